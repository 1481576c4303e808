"""Protects pods of the system: those of kube-system and those of the system's priority classes are never victims."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.engine.queues.disciplines.volcano.jobs import PodOfJob
from shoal.engine.queues.disciplines.volcano.plugins.plugin import Plugin

SYSTEM_NAMESPACE = "kube-system"
SYSTEM_PRIORITY = 2_000_000_000
"""The value of system-cluster-critical; no other class may be as high."""


class Conformance(Plugin):
    defines = frozenset({"Preemptable", "Reclaimable"})

    def preemptable(self, _claimant: PodOfJob, candidates: Sequence[PodOfJob]) -> list[PodOfJob]:
        return [pod for pod in candidates if not _is_of_system(pod)]

    def reclaimable(self, _claimant: PodOfJob, candidates: Sequence[PodOfJob]) -> list[PodOfJob]:
        return [pod for pod in candidates if not _is_of_system(pod)]


def _is_of_system(pod: PodOfJob) -> bool:
    return pod.job.partition("/")[0] == SYSTEM_NAMESPACE or pod.priority >= SYSTEM_PRIORITY
