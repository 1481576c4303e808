"""Declares what the web server needs from outside: facts of the cluster, and answers that take a while to compute."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from shlex import quote as quoted
from typing import Protocol

from shoal.cost.records import Machine
from shoal.views.active_alerts import AlertsAnswer
from shoal.views.dashboard.facts import DashboardFacts, PageSubject
from shoal.views.explanation_document import StoryDocument
from shoal.views.queue_history import QueueHistory
from shoal.views.queue_tree import Tree
from shoal.views.scale_plan import PoolView
from shoal.views.what_if import Proposal, WhatIfAnswer
from shoal.web.viewer import Viewer


class FactsSource(Protocol):
    """The facts of the terminal dashboard."""

    @property
    def version(self) -> int:
        """A number that changes with every change of the cluster."""
        ...

    def facts(self, subject: PageSubject | None) -> DashboardFacts: ...

    def queue_history(self) -> QueueHistory: ...

    def machines(self) -> Sequence[Machine]:
        """The nodes, as costs are computed of them."""
        ...

    def measured_gpus(self) -> Mapping[str, Sequence[Sequence[str]]]:
        """By node, for each GPU in order, the names under which it is measured: its own and those of its parts."""
        ...


class Reports(Protocol):
    """The answers of the commands of the same names. All raise ShoalError where there is none."""

    async def quota_tree(self) -> Tree | None:
        """As `shoal queue` prints it; None for a cluster without queues of Kueue."""
        ...

    async def explanation(self, kind: str, namespace: str, name: str, token: str) -> StoryDocument:
        """As `shoal why` prints it. `token`: the viewer's, with which the cluster is read; empty for the server's own
        credentials."""
        ...

    async def node_pools(self) -> Sequence[PoolView]:
        """As `shoal scale pools` prints them."""
        ...

    async def what_if(self, proposal: Proposal) -> WhatIfAnswer:
        """For the whole cluster."""
        ...


class Alerts(Protocol):
    async def active(self) -> AlertsAnswer:
        """Of all namespaces. A source that does not answer is a fault in the answer."""
        ...


class Viewers(Protocol):
    async def viewer(self, token: str, namespaces: Collection[str]) -> Viewer:
        """What the owner of the token may see of these namespaces. Raises UnauthorizedError for a token that the
        cluster rejects, and TemporaryError where it does not answer."""
        ...

    async def close(self) -> None: ...


Addressing = Callable[[str], str]
"""A command -> the same command with the flags that make it use this cluster."""


class PageCommands:
    """The commands that print the tables of pages."""

    def __init__(self, addressed: Addressing = str, history_options: Sequence[str] = (), alerts: str = "") -> None:
        """`history_options`: those with which commands read the same history. `alerts`: where they find alerts."""
        self.of = addressed
        self._of_history = "".join(f" {quoted(word)}" for word in history_options)
        self._of_alerts = f" --alerts-from {quoted(alerts)}" if alerts else ""

    def of_history(self, command: str) -> str:
        return f"{command}{self._of_history}"

    def table(self, page: str, key: str, *, is_of_alerts: bool = False) -> str:
        """For a table that no other command has. `page`: the address of its page."""
        alerts = self._of_alerts if is_of_alerts else ""
        return self.of(f"shoal web --table {quoted(f'{page}#{key}')}{self._of_history}{alerts}")
