"""A server of pages over facts that a test sets, with answers that it knows, on a port of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import aiohttp

from build.dashboard_facts import NOW_S
from shoal.client.clock import WallClock
from shoal.client.refusals import UnauthorizedError
from shoal.cost.records import Machine
from shoal.units.errors import UserError
from shoal.views.dashboard.cluster_state import ClusterState
from shoal.views.dashboard.facts import DashboardFacts, PageSubject
from shoal.views.explanation_document import Chapter, StoryDocument
from shoal.views.queue_history import QueueHistory, queue_history
from shoal.views.queue_tree import Tree
from shoal.views.remedies import Remedy
from shoal.views.scale_plan import PoolView
from shoal.views.what_if import Proposal, WhatIfAnswer
from shoal.web.further_pages import FurtherSources
from shoal.web.server import WebServer, WebSettings
from shoal.web.site import Site
from shoal.web.viewer import Viewer


class StateFacts:
    """`FactsSource` over a state that the test fills."""

    def __init__(self) -> None:
        self.state = ClusterState("Shoal")
        self.nodes: list[Machine] = []

    @property
    def version(self) -> int:
        return self.state.version

    def facts(self, subject: PageSubject | None) -> DashboardFacts:
        return self.state.scene("", "", NOW_S, subject)

    def queue_history(self) -> QueueHistory:
        return queue_history(self.state.queues.all_workloads())

    def machines(self) -> list[Machine]:
        return self.nodes

    def measured_gpus(self) -> dict[str, list[list[str]]]:
        return {one.name: [[name, f"{name}-part"] for name in one.devices] for one in self.nodes}


class KnownReports:
    def __init__(self, tree: Tree | None = None, story: StoryDocument | None = None) -> None:
        self.tree, self.story = tree, story
        self.tokens: list[str] = []
        """With which explanations were requested."""
        self.pools: list[PoolView] = []
        self.answer: WhatIfAnswer | None = None
        self.proposals: list[Proposal] = []

    async def quota_tree(self) -> Tree | None:
        return self.tree

    async def node_pools(self) -> list[PoolView]:
        return self.pools

    async def what_if(self, proposal: Proposal) -> WhatIfAnswer:
        self.proposals.append(proposal)
        if self.answer is None:
            raise UserError("there is no such quota")
        return self.answer

    async def explanation(self, kind: str, namespace: str, name: str, token: str) -> StoryDocument:
        self.tokens.append(token)
        if self.story is None:
            raise UserError(f"there is no {kind} {namespace}/{name}")
        return self.story


class KnownViewers:
    """`Viewers` by a table: token -> what its owner may see."""

    def __init__(self, viewers: dict[str, Viewer]) -> None:
        self.viewers = viewers

    async def viewer(self, token: str, namespaces: Collection[str]) -> Viewer:
        if token not in self.viewers:
            raise UnauthorizedError("Unauthorized")
        return self.viewers[token]

    async def close(self) -> None:
        pass


def story(command: str = "kubectl delete pod a") -> StoryDocument:
    remedy = Remedy("Delete a pod", commands=(command,))
    chapters = [Chapter("asks", ["8 GPUs"]), Chapter("would help", ["Delete a pod.", command])]
    return StoryDocument("job team/train", "waits", "NoDeviceFits", chapters, [remedy])


@asynccontextmanager
async def served(
    facts: StateFacts,
    reports: KnownReports | None = None,
    viewers: dict[str, Viewer] | None = None,
    further: FurtherSources | None = None,
    settings: WebSettings | None = None,
) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    """The address without its final slash, and a client."""
    clock = WallClock()
    known = None if viewers is None else KnownViewers(viewers)
    site = Site(facts, reports or KnownReports(), known, clock, further=further)
    server = WebServer(site, settings or WebSettings(port=0), clock)
    await server.start()
    try:
        async with aiohttp.ClientSession() as client:
            yield server.url.rstrip("/"), client
    finally:
        await server.close()
