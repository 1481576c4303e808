"""Finds the page of a path, for one viewer: from the facts of the cluster and the reports of the commands.

Guarantees: facts are made once for each change of the cluster and each subject, however many viewers there are. The
quota tree is computed when a viewer looks at it, and again at the earliest after five seconds. Explanations of one
viewer are computed one after another, so that others get theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import unquote

from shoal.client.clock import Clock
from shoal.units.errors import ShoalError, UserError, one_line
from shoal.views.dashboard.colours import Colours
from shoal.views.dashboard.facts import (
    DashboardFacts,
    GangDetail,
    NodeDetail,
    PageSubject,
    PodDetail,
    QueueDetail,
)
from shoal.views.queue_tree import Tree
from shoal.web.fleet_page import FleetPage
from shoal.web.markup import Markup, element, joined
from shoal.web.node_page import NodePage
from shoal.web.page import WebPage
from shoal.web.ports import Addressing, FactsSource, Reports, Viewers
from shoal.web.queue_pages import QueuePages
from shoal.web.tile_markup import TileMarkup
from shoal.web.viewer import ALL, PermittedFacts, Viewer, namespaces_of, permitted_tree
from shoal.web.workload_pages import WorkloadPages, explanation_markup

_TREE_S = 5.0
_MOST_FACTS = 64
_MOST_EXPLANATIONS = 4
"""Of one viewer at once: one is computed, and the others wait."""
_EXPLAINED = frozenset({"job", "workload", "deployment", "statefulset", "pod", "gang"})
_AGES_S = 15.0
"""After this time the ages on a page are written again, also where the cluster has not changed."""


class _Turns:
    """Those of one viewer."""

    def __init__(self) -> None:
        self.turn, self.wanted = asyncio.Lock(), 0


class Site:
    def __init__(
        self,
        source: FactsSource,
        reports: Reports,
        viewers: Viewers | None,
        clock: Clock,
        addressed: Addressing = str,
    ) -> None:
        """`viewers`: None where every viewer sees what the server sees."""
        colours = Colours()
        tiles = TileMarkup(colours)
        self._source, self._reports, self._viewers, self._clock = source, reports, viewers, clock
        self._permitted = PermittedFacts()
        self._fleet = FleetPage(colours, tiles, addressed)
        self._node = NodePage(tiles, addressed)
        self._queues = QueuePages(addressed)
        self._workloads = WorkloadPages(addressed)
        self._facts: dict[PageSubject | None, tuple[tuple[int, int], DashboardFacts]] = {}
        self._tree: tuple[float, Tree | None, str] = (float("-inf"), None, "")
        self._reading = asyncio.Lock()
        self._turns: dict[str, _Turns] = {}

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
        subject = _subject(parts)
        facts, viewer = await self._seen(subject, token)
        if not parts:
            return self._fleet.page(facts, is_table=query.get("as") == "table", may_list_nodes=viewer.lists_nodes)
        if parts == ["queues"]:
            tree, fault = await self._quota_tree() if viewer.lists_queues else (None, "")
            shown = None if tree is None else permitted_tree(tree, viewer)
            return self._queues.page(facts, shown, fault, may_list_queues=viewer.lists_queues)
        if parts == ["workloads"]:
            return self._workloads.page(facts)
        return self._of_subject(facts, parts, path)

    async def hover(self, name: str, token: str) -> Markup | None:
        facts, _ = await self._seen(PageSubject("node", name), token)
        return self._node.hover(facts.detail) if isinstance(facts.detail, NodeDetail) else None

    async def explanation(self, path: str, token: str) -> Markup:
        """Raises ShoalError where there is none."""
        parts = [unquote(part) for part in path.strip("/").split("/") if part]
        if len(parts) != 3 or parts[0] not in _EXPLAINED:
            return element("p", "There is no explanation of this.")
        # The cluster decides with the viewer's own token what can be read.
        kind, namespace, name = parts
        if self._viewers is None:
            return explanation_markup(await self._reports.explanation(kind, namespace, name, ""))
        turns = self._turns.setdefault(token, _Turns())
        if turns.wanted >= _MOST_EXPLANATIONS:
            raise UserError("too many explanations are computed for you at once", fix="load this page again later")
        turns.wanted += 1
        try:
            async with turns.turn:
                return explanation_markup(await self._reports.explanation(kind, namespace, name, token))
        finally:
            turns.wanted -= 1
            if not turns.wanted:
                del self._turns[token]

    async def _seen(self, subject: PageSubject | None, token: str) -> tuple[DashboardFacts, Viewer]:
        facts = self._current(subject)
        viewer = ALL if self._viewers is None else await self._viewers.viewer(token, namespaces_of(facts))
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

    async def _quota_tree(self) -> tuple[Tree | None, str]:
        async with self._reading:
            read_s, tree, fault = self._tree
            if self._clock.seconds() - read_s >= _TREE_S:
                try:
                    tree, fault = await self._reports.quota_tree(), ""
                except ShoalError as error:
                    tree, fault = None, one_line(str(error))
                self._tree = self._clock.seconds(), tree, fault
            return tree, fault

    def _of_subject(self, facts: DashboardFacts, parts: list[str], path: str) -> WebPage:
        detail = facts.detail
        if isinstance(detail, NodeDetail):
            return self._node.page(facts, detail)
        if isinstance(detail, QueueDetail):
            return self._queues.one(facts, detail)
        if isinstance(detail, GangDetail):
            return self._workloads.gang(facts, detail)
        if isinstance(detail, PodDetail):
            return self._workloads.pod(facts, detail)
        if len(parts) == 3 and parts[0] in _EXPLAINED - {"pod", "gang"}:
            return self._workloads.other(*parts)
        words = " ".join(parts[:1]) or "page"
        text = joined(
            (
                element("h1", "Not found"),
                element("p", f"The cluster has no such {one_line(words)}, or your account may not list it."),
                element("p", element("a", "Back to the fleet", href="/")),
            )
        )
        return WebPage("Not found", path, {"missing": text}, status=404)


def _subject(parts: list[str]) -> PageSubject | None:
    match parts:
        case ["node", name]:
            return PageSubject("node", name)
        case ["queue", kind, name]:
            return PageSubject("queue", f"{kind}/{name}")
        case ["pod", namespace, name]:
            return PageSubject("pod", f"{namespace}/{name}")
        case ["gang", namespace, name]:
            return PageSubject("gang", f"{namespace}/{name}")
    return None
