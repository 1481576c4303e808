"""Writes the PodScheduled condition of held pods, which the scheduler does not try to place.

A few conditions are written at a time, after everything else, and only if the message changed: a queue may have ten
thousand waiting pods.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container

from shoal.client.context import Context
from shoal.client.kind import PODS
from shoal.client.unscheduled_condition import Unscheduled
from shoal.engine.asks import Ask
from shoal.engine.gangs.evidence import GroupEvidence
from shoal.engine.queues.disciplines.kai.admission_unit import AdmissionUnit
from shoal.engine.queues.disciplines.kai.admission_units import AdmissionUnits
from shoal.engine.reasons import Code, Evidence
from shoal.units.errors import ShoalError
from shoal.views.live_refusals import Outlook, gang_words

_log = logging.getLogger("shoal.kai")
_MAX_WRITES = 64


class HeldPodConditions:
    def __init__(self, context: Context, units: AdmissionUnits, nodes: Callable[[], int]) -> None:
        """`nodes` returns the number of nodes."""
        self._units = units
        self._nodes = nodes
        self._pods = context.informers.of(PODS)
        self._unscheduled = Unscheduled(context.api, context.clock, context.events)
        self._written: dict[str, tuple[str, str]] = {}
        """Pod -> its uid and the written message."""

    async def write(self, refused: Container[str], reason_of: Callable[[AdmissionUnit], tuple[str, str]]) -> bool:
        """Writes conditions for the pods of `refused` units, with `reason_of`; returns whether all were written."""
        before, self._written = self._written, {}
        left = _MAX_WRITES
        for unit in list(self._units.all.values()):
            message = self._message(unit, refused, reason_of)
            for pod in list(unit.waiting) if message else ():
                item = self._pods.get(*pod.split("/", 1))
                if item is None:
                    continue
                if before.get(pod) != (item.uid, message) and not self._unscheduled.is_reported(item, message):
                    if not left:
                        return False
                    left -= 1
                    try:
                        await self._unscheduled.report(item, message)
                    except ShoalError as error:
                        _log.info("Failed to write the condition of pod %s: %s", pod, error)
                        continue
                self._written[pod] = item.uid, message
        return True

    def _message(
        self, unit: AdmissionUnit, refused: Container[str], reason_of: Callable[[AdmissionUnit], tuple[str, str]]
    ) -> str:
        if unit.active or not unit.waiting:
            return ""
        if not unit.is_ready:
            code = Code.GANG_TOO_SMALL if unit.spec.is_known else Code.GANG_UNKNOWN
            evidence = GroupEvidence(unit.spec.name, code, needs=unit.spec.minimum or 0, exist=unit.pod_count)
            return gang_words(evidence, Outlook(Ask(), Evidence(self._nodes(), ())))
        return ": ".join(reason_of(unit)) if unit.key in refused else ""
