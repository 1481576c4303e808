"""Makes the pages about costs, time, capacity, alerts and proposals, each with what the viewer may see.

Each page says what is wrong where its source has no answer; no other page depends on that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from shoal.client.clock import Clock
from shoal.cost.prices.machine_prices import machine_prices
from shoal.cost.prices.price_file import PriceFile
from shoal.units.errors import ShoalError, UserError, one_line
from shoal.views.active_alerts import AlertsAnswer
from shoal.views.job_history import JobSubject
from shoal.views.node_groups import NodeGroup, node_groups
from shoal.views.scale_plan import PoolView
from shoal.web.alerts_page import AlertsPage
from shoal.web.capacity_page import CapacityPage
from shoal.web.cost_page import CostPage
from shoal.web.history_answers import CostQuestion, Histories, JobHistory, NodeHistory
from shoal.web.kept_answers import KeptAnswers
from shoal.web.markup import Markup, element, joined
from shoal.web.page import WebPage
from shoal.web.ports import Alerts, FactsSource, PageCommands, Reports
from shoal.web.timelines_page import TimelinesPage
from shoal.web.turns import ViewerTurns
from shoal.web.viewer import Viewer
from shoal.web.viewing import Viewing
from shoal.web.what_if_page import WhatIfPage, permitted_answer, proposal_of

_KEPT_S = 15.0
_NO_HISTORY = "There is no history: name its folder with shoal web --history DIR. shoal up and shoal run record one."
_USUAL_WINDOW = "24h"


class FurtherSources(msgspec.Struct, frozen=True):
    """What some servers have, and others not."""

    histories: Histories | None = None
    alerts: Alerts | None = None
    prices: PriceFile = PriceFile()
    history_options: Sequence[str] = ()
    """Those with which commands read the same history."""
    alerts_from: str = ""
    """What `shoal web --alerts-from` is given for the same alerts."""


class FurtherPages:
    def __init__(
        self, facts: FactsSource, reports: Reports, sources: FurtherSources, kept: KeptAnswers, commands: PageCommands
    ) -> None:
        self._source, self._reports, self._sources, self._kept = facts, reports, sources, kept
        self._cost = CostPage(commands)
        self._timelines = TimelinesPage(commands)
        self._capacity = CapacityPage(commands)
        self._alerts = AlertsPage(commands)
        self._what_if = WhatIfPage(commands)
        self._turns = ViewerTurns()

    async def page(self, name: str, viewing: Viewing, clock: Clock) -> WebPage | None:
        """None for a name that is none of these."""
        match name:
            case "cost":
                return await self._cost_page(viewing)
            case "timelines":
                return await self._timelines_page(viewing)
            case "capacity":
                return await self._capacity_page(viewing, clock)
            case "alerts":
                answer = AlertsAnswer() if self._sources.alerts is None else await self._sources.alerts.active()
                namespaces = {one.namespace for one in answer.alerts} - {""}
                # The time of the cluster, which may be a simulated one.
                now_s = (await viewing.facts()).now_s
                return self._alerts.page(answer, await viewing.viewer(namespaces), now_s)
            case "what-if":
                return await self._what_if_page(viewing)
        return None

    async def job_history(self, subject: JobSubject) -> JobHistory:
        if self._sources.histories is None:
            return JobHistory(fault=_NO_HISTORY)
        try:
            return await self._sources.histories.job(subject)
        except ShoalError as error:
            return JobHistory(fault=one_line(str(error)))

    async def node_history(self, name: str, viewing: Viewing) -> NodeHistory:
        histories = self._sources.histories
        if histories is None:
            return NodeHistory(fault=_NO_HISTORY)
        try:
            viewer = await viewing.viewer(await histories.node_namespaces(name))
            return await histories.node(name, (await self._measured_gpus()).get(name, ()), viewer.namespaces)
        except ShoalError as error:
            return NodeHistory(fault=one_line(str(error)))

    async def degrees(self) -> dict[str, list[float | None]]:
        """Of each GPU of each node, in order, as it was measured last; empty where nothing is known."""
        histories = self._sources.histories
        if histories is None:
            return {}

        async def found() -> dict[str, list[float | None]]:
            measured = await histories.temperatures()
            return {
                node: [max((measured[name] for name in names if name in measured), default=None) for names in gpus]
                for node, gpus in (await self._measured_gpus()).items()
            }

        try:
            return await self._kept.of("degrees", _KEPT_S, found)
        except ShoalError:
            # The pages that need the history say what is wrong with it.
            return {}

    async def _measured_gpus(self) -> Mapping[str, Sequence[Sequence[str]]]:
        async def found() -> Mapping[str, Sequence[Sequence[str]]]:
            return self._source.measured_gpus()

        return await self._kept.of("measured gpus", _KEPT_S, found)

    async def answer(self, viewing: Viewing) -> Markup:
        """Of a proposal. Raises ShoalError where there is none."""
        page = await self._answered(viewing, await viewing.viewer())
        return joined(element("section", part) for part in page.parts.values())

    async def _cost_page(self, viewing: Viewing) -> WebPage:
        usual = CostQuestion()
        query = viewing.query
        question = CostQuestion(query.get("by", usual.by), query.get("window", usual.window))
        histories = self._sources.histories
        if histories is None:
            viewer = await viewing.viewer()
            return self._cost.fault(question, _NO_HISTORY, lists_nodes=viewer.lists_nodes)
        lists_nodes = False
        try:
            viewer = await viewing.viewer(await histories.namespaces(question.window))
            lists_nodes = viewer.lists_nodes
            if question.by == "node" and not lists_nodes:
                raise UserError("your account may not list nodes")
            answer = await histories.costs(question, viewer.namespaces)
        except UserError as error:
            # What is asked of the user may name a node.
            words = str(error) if lists_nodes else f"{error.what}, or no prices are known"
            return self._cost.fault(question, one_line(words), lists_nodes=lists_nodes)
        return self._cost.page(question, answer, lists_nodes=lists_nodes)

    async def _timelines_page(self, viewing: Viewing) -> WebPage:
        window = viewing.query.get("window", _USUAL_WINDOW)
        histories = self._sources.histories
        if histories is None:
            return self._timelines.fault(window, _NO_HISTORY)
        try:
            viewer = await viewing.viewer(await histories.timeline_namespaces(window))
            return self._timelines.page(window, await histories.timelines(window, viewer.namespaces))
        except UserError as error:
            return self._timelines.fault(window, one_line(str(error)))

    async def _capacity_page(self, viewing: Viewing, clock: Clock) -> WebPage:
        viewer = await viewing.viewer()
        if not viewer.lists_nodes:
            return self._capacity.refusal()
        fault = ""
        pools: Sequence[PoolView] = ()
        try:
            pools = await self._kept.of("pools", _KEPT_S, self._reports.node_pools)
        except ShoalError as error:
            fault = one_line(str(error))

        async def groups() -> list[NodeGroup]:
            machines, now_s = self._source.machines(), clock.seconds()
            today = datetime.fromtimestamp(now_s, UTC).date()
            prices = machine_prices(machines, self._sources.prices, today)
            # Sums over all namespaces: they name nothing that is held.
            return node_groups(machines, self._source.facts(None).tiles, prices, round(now_s * 1000))

        found = await self._kept.of("groups", 5.0, groups)
        return self._capacity.page(found, pools, self._sources.prices.currency, fault)

    async def _what_if_page(self, viewing: Viewing) -> WebPage:
        viewer = await viewing.viewer()
        if not (viewer.lists_queues and viewer.lists_nodes):
            return self._what_if.refusal()
        if "csv" in viewing.query:
            return await self._answered(viewing, viewer)
        return self._what_if.page(await viewing.facts(), proposal_of(viewing.query))

    async def _answered(self, viewing: Viewing, viewer: Viewer) -> WebPage:
        if not (viewer.lists_queues and viewer.lists_nodes):
            return self._what_if.refusal()
        proposal = proposal_of(viewing.query)
        if proposal.is_empty:
            raise UserError("nothing is proposed")
        async with self._turns.of(viewing.token):
            answer = await self._kept.of(("what if", proposal), _KEPT_S, lambda: self._reports.what_if(proposal))
        if viewer.namespaces is not None:
            changes = () if answer.queues is None else answer.queues.changes
            names = [*(one.namespace for one in answer.pods), *(one.workload.partition("/")[0] for one in changes)]
            viewer = await viewing.viewer(frozenset(names))
        return self._what_if.answered(proposal, permitted_answer(answer, viewer.namespaces))
