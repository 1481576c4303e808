"""The rules by which jobs and pods are held, queued and released: those of one configuration, while Kueue does not run.

The configuration is that of a file, or the cluster's ConfigMap. The controllers that hold jobs at their creation and
those that start them read it here each time, so that they use the same rules; with the admission discipline they share
one check whether Kueue runs, so that either all of them work or none.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from shoal.api.kueue import Configuration
from shoal.client.context import Context
from shoal.client.presence import KUEUE, Presence
from shoal.controllers.gatekeeping.held_kinds import HoldingRules, holding_rules_of
from shoal.controllers.queued_work.rules import JobRules, job_rules_of
from shoal.store.object_faults import ObjectFaults
from shoal.store.watched.queue_configuration import ConfigurationWatch
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.run_choice import KAI, QUEUES, SCHEDULER, VOLCANO, RunChoice

_PATIENCE_S = 5.0
_CONFIGURED = {QUEUES, "jobs", "pods", "gatekeeper"}


class QueueRules:
    def __init__(self, context: Context, choice: RunChoice) -> None:
        where = choice.own.namespaces.kueue
        self.presence = Presence(context, KUEUE, where)
        parts = {*choice.controllers}
        self._are_others = QUEUES not in parts and bool({KAI, VOLCANO} & parts)
        self._schedulers = frozenset(choice.scheduler_names)
        self._watch: ConfigurationWatch | None = None
        self._then: list[Callable[[], None]] = []
        self.on_presence_change: Callable[[], None] = lambda: None
        """Called when Kueue starts or stops, unless the admission discipline checks that itself."""
        if choice.kueue is None:
            # The admission discipline reports faults of the configuration.
            self._watch = ConfigurationWatch(context, ObjectFaults(), self._take, where)
        self._take(choice.kueue)

    def holding(self) -> HoldingRules | None:
        """None where nothing may be held: Kueue admits here, or the queues of another project decide, and would never
        admit what waits for Kueue's."""
        return None if self.presence.is_there or self._are_others else self._holding

    def jobs(self) -> JobRules | None:
        return None if self.presence.is_there else self._jobs

    def on_change(self, then: Callable[[], None]) -> None:
        """Registers a function that is called when the rules have changed."""
        self._then.append(then)

    async def begin(self, tasks: ProcessTasks, parts: tuple[str, ...]) -> None:
        """Returns when the rules are known, so that no part starts with others. Without permission to read them the
        default rules apply; the missing permission is reported elsewhere.
        """
        if not (_CONFIGURED | {SCHEDULER}) & {*parts}:
            return
        if self._watch is not None and _CONFIGURED & {*parts}:
            tasks.start("configuration of queues", self._watch.run)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._watch.synced(), _PATIENCE_S)
        await self.presence.look()
        if QUEUES not in parts:
            # Otherwise the admission discipline checks, and wakes up by it.
            tasks.start("presence of Kueue", lambda: self.presence.run(self._presence_changed))

    def _presence_changed(self) -> None:
        self.on_presence_change()

    def _take(self, configuration: Configuration | None) -> None:
        present = configuration or Configuration()
        self._holding = holding_rules_of(present)
        self._jobs = job_rules_of(present, self._schedulers)
        for then in self._then:
            then()
