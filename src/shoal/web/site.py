"""Finds the page of a path, for one viewer: from the facts of the cluster and the reports of the commands.

Guarantees: facts are made once for each change of the cluster and each subject, however many viewers there are. What
takes a while (the quota tree, nodes, pools, proposals) is computed when a viewer looks at it, and again at the earliest
after some seconds. Explanations of one viewer are computed one after another, so that others get theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import unquote

from shoal.client.clock import Clock
from shoal.units.errors import ShoalError, one_line
from shoal.views.dashboard.colours import Colours
from shoal.views.dashboard.facts import (
    DashboardFacts,
    GangDetail,
    JobDetail,
    NodeDetail,
    PageSubject,
    PodDetail,
    QueueDetail,
)
from shoal.views.job_history import JobSubject
from shoal.web.fleet_page import FleetPage
from shoal.web.further_pages import FurtherPages, FurtherSources
from shoal.web.history_answers import JobHistory
from shoal.web.kept_answers import KeptAnswers
from shoal.web.markup import Markup, element, joined
from shoal.web.node_page import NodePage
from shoal.web.page import WebPage
from shoal.web.ports import Addressing, FactsSource, PageCommands, Reports, Viewers
from shoal.web.queue_pages import QueuePages, ShownQueues
from shoal.web.tile_markup import TileMarkup
from shoal.web.turns import ViewerTurns
from shoal.web.viewer import ALL, PermittedFacts, Viewer, namespaces_of, permitted_tree
from shoal.web.workload_pages import WorkloadPages, explanation_markup

_TREE_S = 5.0
_MOST_FACTS = 64
_EXPLAINED = frozenset({"job", "workload", "deployment", "statefulset", "pod", "gang"})
_PROPOSALS = "what-if"
_OF_OTHERS = "Your account may not list pods in this namespace."
_AGES_S = 15.0
"""After this time the ages on a page are written again, also where the cluster has not changed."""


class Site:
    def __init__(
        self,
        source: FactsSource,
        reports: Reports,
        viewers: Viewers | None,
        clock: Clock,
        addressed: Addressing = str,
        further: FurtherSources | None = None,
    ) -> None:
        """`viewers`: None where every viewer sees what the server sees."""
        sources = further or FurtherSources()
        commands = PageCommands(addressed, sources.history_options, sources.alerts_from)
        colours = Colours()
        tiles = TileMarkup(colours)
        self._source, self._reports, self._viewers, self._clock = source, reports, viewers, clock
        self._permitted = PermittedFacts()
        self._fleet = FleetPage(colours, tiles, commands)
        self._node = NodePage(tiles, commands)
        self._queues = QueuePages(commands)
        self._workloads = WorkloadPages(commands)
        self._kept, self._turns = KeptAnswers(clock), ViewerTurns()
        self._further = FurtherPages(source, reports, sources, self._kept, commands)
        self._facts: dict[PageSubject | None, tuple[tuple[int, int], DashboardFacts]] = {}

    @property
    def needs_token(self) -> bool:
        return self._viewers is not None

    def version(self) -> tuple[int, int]:
        """A value that changes when a page may have changed."""
        return self._source.version, int(self._clock.seconds() // _AGES_S)

    async def check(self, token: str) -> None:
        """Raises UnauthorizedError for a token that the cluster rejects."""
        if self._viewers is not None:
            await self._viewers.viewer(token, ())

    async def page(self, path: str, query: Mapping[str, str], token: str) -> WebPage:
        parts = [unquote(part) for part in path.strip("/").split("/") if part]
        if len(parts) == 1:
            found = await self._further.page(parts[0], _Viewing(self, query, token), self._clock)
            if found is not None:
                return found
        facts, viewer = await self.seen(_subject(parts), token)
        if not parts:
            degrees = await self._further.degrees() if viewer.lists_nodes else {}
            is_table = query.get("as") == "table"
            return self._fleet.page(facts, is_table=is_table, may_list_nodes=viewer.lists_nodes, degrees=degrees)
        if parts == ["queues"]:
            return await self._queues_page(facts, viewer)
        if parts == ["workloads"]:
            return self._workloads.page(facts)
        if isinstance(facts.detail, NodeDetail):
            name = facts.detail.tile.node.name
            measured = await self._further.degrees()
            history = await self._further.node_history(name, _Viewing(self, query, token))
            return self._node.page(facts, facts.detail, history, measured.get(name, ()))
        job = await self._job(facts, parts, token)
        if job is not None:
            return job
        return self._of_subject(facts, parts, path)

    async def hover(self, name: str, token: str) -> Markup | None:
        facts, _ = await self.seen(PageSubject("node", name), token)
        return self._node.hover(facts.detail) if isinstance(facts.detail, NodeDetail) else None

    async def explanation(self, path: str, query: Mapping[str, str], token: str) -> Markup:
        """What takes a while on a page. Raises ShoalError where there is none."""
        parts = [unquote(part) for part in path.strip("/").split("/") if part]
        if parts == [_PROPOSALS]:
            return await self._further.answer(_Viewing(self, query, token))
        if len(parts) != 3 or parts[0] not in _EXPLAINED:
            return element("p", "There is no explanation of this.")
        # The cluster decides with the viewer's own token what can be read.
        own = "" if self._viewers is None else token
        async with self._turns.of(own):
            return explanation_markup(await self._reports.explanation(parts[0], parts[1], parts[2], own))

    async def viewer(self, token: str, namespaces: Collection[str]) -> Viewer:
        return ALL if self._viewers is None else await self._viewers.viewer(token, namespaces)

    async def seen(self, subject: PageSubject | None, token: str) -> tuple[DashboardFacts, Viewer]:
        """The facts that the owner of the token may see."""
        facts = self._current(subject)
        viewer = await self.viewer(token, () if self._viewers is None else namespaces_of(facts))
        return self._permitted.of(facts, viewer), viewer

    def _current(self, subject: PageSubject | None) -> DashboardFacts:
        version = self.version()
        known = self._facts.get(subject)
        if known is not None and known[0] == version:
            return known[1]
        if len(self._facts) >= _MOST_FACTS:
            self._facts.clear()
        found = self._source.facts(subject)
        self._facts[subject] = version, found
        return found

    async def _queues_page(self, facts: DashboardFacts, viewer: Viewer) -> WebPage:
        if not viewer.lists_queues:
            return self._queues.refusal()
        tree, fault = None, ""
        try:
            tree = await self._kept.of("tree", _TREE_S, self._reports.quota_tree)
        except ShoalError as error:
            fault = one_line(str(error))
        shown = None if tree is None else permitted_tree(tree, viewer)
        return self._queues.page(facts, ShownQueues(shown, fault, self._source.queue_history(), viewer))

    async def _job(self, facts: DashboardFacts, parts: list[str], token: str) -> WebPage | None:
        """None for what is no workload."""
        detail = facts.detail
        is_known = isinstance(detail, GangDetail | PodDetail | JobDetail)
        if len(parts) != 3 or parts[0] not in _EXPLAINED or not (is_known or parts[0] not in ("pod", "gang")):
            return None
        subject = JobSubject(*parts)
        viewer = await self.viewer(token, {subject.namespace})
        sees = viewer.sees(subject.namespace)
        history = await self._further.job_history(subject) if sees else JobHistory(fault=_OF_OTHERS)
        if isinstance(detail, GangDetail):
            return self._workloads.gang(facts, detail, history)
        if isinstance(detail, PodDetail):
            return self._workloads.pod(facts, detail, history)
        if isinstance(detail, JobDetail):
            return self._workloads.job(facts, detail, history)
        return self._workloads.other(subject, history)

    def _of_subject(self, facts: DashboardFacts, parts: list[str], path: str) -> WebPage:
        if isinstance(facts.detail, QueueDetail):
            return self._queues.one(facts, facts.detail)
        words = " ".join(parts[:1]) or "page"
        text = joined(
            (
                element("h1", "Not found"),
                element("p", f"The cluster has no such {one_line(words)}, or your account may not list it."),
                element("p", element("a", "Back to the fleet", href="/")),
            )
        )
        return WebPage("Not found", path, {"missing": text}, status=404)


class _Viewing:
    """Implements `Viewing`."""

    def __init__(self, site: Site, query: Mapping[str, str], token: str) -> None:
        self._site, self.query, self.token = site, query, token

    async def viewer(self, namespaces: Collection[str] = ()) -> Viewer:
        return await self._site.viewer(self.token, namespaces)

    async def facts(self) -> DashboardFacts:
        return (await self._site.seen(None, self.token))[0]


def _subject(parts: list[str]) -> PageSubject | None:
    match parts:
        case ["node", name]:
            return PageSubject("node", name)
        case ["queue", kind, name]:
            return PageSubject("queue", f"{kind}/{name}")
        case ["pod", namespace, name]:
            return PageSubject("pod", f"{namespace}/{name}")
        case ["job", namespace, name]:
            return PageSubject("job", f"{namespace}/{name}")
        case ["gang", namespace, name]:
            return PageSubject("gang", f"{namespace}/{name}")
    return None
