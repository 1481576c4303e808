"""Reports on queued pods and their owners that they can never be admitted as they are written.

Pods have a condition, which shows that it was reported. An owner gets an Event once: controllers of serving kinds
overwrite their conditions with each status, so that a condition of Shoal would be lost.
"""

from __future__ import annotations

from shoal.client.item import Key
from shoal.controllers.queued_pods.workload_context import WorkloadContext
from shoal.controllers.queued_pods.writer import QueuedPodWriter
from shoal.controllers.queued_work.quota_condition import Fault

_MOST_REPORTED = 10_000


class FaultReports:
    def __init__(self, writer: QueuedPodWriter) -> None:
        self._writer = writer
        self._reported: dict[Key, Fault] = {}
        """By the keys of Workloads of serving kinds."""

    async def report(self, context: WorkloadContext, fault: Fault | None) -> None:
        """None: there is no fault any more."""
        if fault is None:
            self._reported.pop(context.key, None)
        elif context.parent is not None and self._reported.get(context.key) != fault:
            if len(self._reported) >= _MOST_REPORTED:
                # Many of the objects may be deleted; repeating the Events of the others is harmless.
                self._reported.clear()
            self._reported[context.key] = fault
            self._writer.record_on(context.parent.obj, context.parent.kind, *fault, "Warning")
        await self._writer.write_condition(context.pods, fault)
