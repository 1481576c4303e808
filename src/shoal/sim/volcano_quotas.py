"""Decides which pods of a set of manifests Volcano's queues hold back for lack of quota, with the engine's quota tree.

Rejected: evicting pods to return quota. On a cluster that needs pods that end and others that are created; for
manifests, the reason says that other pods would have to be evicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shoal.engine.queues.disciplines.volcano.admission_units import (
    AdmissionUnit,
    UnitOrder,
    split_by_own_quota,
    units_of_group,
)
from shoal.engine.queues.disciplines.volcano.group_phases import NOT_ENOUGH_RESOURCES
from shoal.engine.queues.disciplines.volcano.objects import GroupPod, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.queue_quotas import QueueQuotas
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues
from shoal.store.held_pods import HeldPod

_MAX_CYCLES = 10_000
_NEEDS_PREEMPTION = "other groups, which use more than their queues deserve, have to be evicted for it"


def held_by_quotas(
    quotas: QueueQuotas,
    groups: Mapping[str, QueuedPodGroup],
    members: Mapping[str, Sequence[GroupPod]],
    ranks: Mapping[str, int],
) -> dict[str, HeldPod]:
    """The reason by held pod of enqueued groups; empty if no queue declares how quota is shared."""
    if not quotas.is_configured:
        return {}
    quotas_of_manifests = _ManifestQuotas(quotas, groups, members, ranks)
    while quotas_of_manifests.admit_waiting():
        pass
    return quotas_of_manifests.held_pods()


class _ManifestQuotas:
    def __init__(
        self,
        quotas: QueueQuotas,
        groups: Mapping[str, QueuedPodGroup],
        members: Mapping[str, Sequence[GroupPod]],
        ranks: Mapping[str, int],
    ) -> None:
        self._quotas = quotas
        self._kueue = Kueue(Queues(quotas.settings))
        for fact in quotas.facts():
            self._kueue.queues.put(fact)
        self._kueue.queues.refresh()
        known = self._kueue.queues.cluster_queues
        self._groups = {name: group for name, group in groups.items() if group.queue in known}
        self._pods = {name: [pod for pod in members.get(name, ()) if not pod.is_finished] for name in self._groups}
        self._ranks = ranks
        self._admitted = {_key(pod) for pods in self._pods.values() for pod in pods if pod.spec.node_name}
        """Pods with a node, and admitted pods."""
        self._needs_preemption: set[str] = set()
        """Units for which other units would have to be preempted."""

    def admit_waiting(self) -> bool:
        """Admits the units with quota; returns whether there were any. Pods beyond the minimum come in a later pass."""
        units = {unit.key: unit for unit in self._units()}
        before = len(self._admitted)
        for unit in units.values():
            if unit.active:
                self._kueue.put_workload(unit.facts(self._quotas, None, is_preemptible=True), 0.0)
        for part in split_by_own_quota(self._quotas, units.values()):
            for unit in part:
                self._kueue.put_workload(unit.facts(self._quotas, None, is_preemptible=True), 0.0)
            self._cycles(units)
        return len(self._admitted) > before

    def held_pods(self) -> dict[str, HeldPod]:
        found: dict[str, HeldPod] = {}
        for unit in self._units():
            words = (
                _NEEDS_PREEMPTION
                if unit.key in self._needs_preemption
                else f"queue resource quota insufficient in queue {unit.queue}"
            )
            more = "The group continues when other groups finish, or when the queue deserves more."
            if unit.key in self._needs_preemption:
                more = "A scheduler evicts them; a decision about manifests evicts nothing."
            reason = HeldPod(NOT_ENOUGH_RESOURCES, words, more, f"Volcano queue {unit.queue}", unit.group)
            found |= dict.fromkeys(unit.waiting, reason)
        return found

    # internals

    def _cycles(self, units: Mapping[str, AdmissionUnit]) -> None:
        for _ in range(_MAX_CYCLES):
            if self._kueue.is_idle:
                return
            decisions = self._kueue.cycle(0.0)
            for admitted in decisions.admitted:
                self._admitted.update(units[admitted.workload].waiting)
            self._needs_preemption |= {waiting.workload for waiting in decisions.waiting if waiting.why is Wait.VICTIMS}
            if decisions.preempted:
                # No unit is preempted here: the preempting unit waits.
                return

    def _units(self) -> Iterator[AdmissionUnit]:
        for name, group in self._groups.items():
            active = {_key(pod): pod.requests() for pod in self._pods[name] if _key(pod) in self._admitted}
            waiting = [pod for pod in self._pods[name] if _key(pod) not in self._admitted]
            yield from units_of_group(name, group, waiting, active, UnitOrder(group.queue, self._ranks.get(name, 0)))


def _key(pod: GroupPod) -> str:
    return "/".join(pod.metadata.key)
