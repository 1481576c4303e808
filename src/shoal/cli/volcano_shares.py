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
from shoal.engine.queues.disciplines.volcano.objects import GroupPod, PodGroup
from shoal.engine.queues.disciplines.volcano.queue_quotas import QueueQuotas
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues
from shoal.store.kept import Kept

_MOST_CYCLES = 10_000
_OWED = "others would have to give back what they have beyond what they deserve; not decided on files"


def kept_by_shares(
    quotas: QueueQuotas,
    groups: Mapping[str, PodGroup],
    members: Mapping[str, Sequence[GroupPod]],
    ranks: Mapping[str, int],
) -> dict[str, Kept]:
    """By pod, of the groups that were let in; none where nobody said how queues share."""
    if not quotas.is_configured:
        return {}
    book = _Book(quotas, groups, members, ranks)
    while book.let_in():
        pass
    return book.kept()


class _Book:
    def __init__(
        self,
        quotas: QueueQuotas,
        groups: Mapping[str, PodGroup],
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
        self._in = {_key(pod) for pods in self._pods.values() for pod in pods if pod.spec.node_name}
        """Pods that have a place, or may look for one."""
        self._owed: set[str] = set()
        """Units for whose sake others would have to give something back."""

    def let_in(self) -> bool:
        """Whoever has quota; whether active was anybody. What groups have beyond their minimum comes after it."""
        units = {unit.key: unit for unit in self._units()}
        before = len(self._in)
        for unit in units.values():
            if unit.active:
                self._kueue.put_workload(unit.facts(self._quotas, None, is_preemptible=True), 0.0)
        for turn in split_by_own_quota(self._quotas, units.values()):
            for unit in turn:
                self._kueue.put_workload(unit.facts(self._quotas, None, is_preemptible=True), 0.0)
            self._cycles(units)
        return len(self._in) > before

    def kept(self) -> dict[str, Kept]:
        found: dict[str, Kept] = {}
        for unit in self._units():
            words = _OWED if unit.key in self._owed else f"queue resource quota insufficient in queue {unit.queue}"
            more = "It goes on when others of the queue end, or when it deserves more."
            kept = Kept(NOT_ENOUGH_RESOURCES, words, more, f"Volcano queue {unit.queue}", unit.group)
            found |= dict.fromkeys(unit.waiting, kept)
        return found

    # Inside

    def _cycles(self, units: Mapping[str, AdmissionUnit]) -> None:
        for _ in range(_MOST_CYCLES):
            if self._kueue.is_idle:
                return
            decisions = self._kueue.cycle(0.0)
            for admitted in decisions.admitted:
                self._in.update(units[admitted.workload].waiting)
            self._owed |= {waiting.workload for waiting in decisions.waiting if waiting.why is Wait.VICTIMS}
            if decisions.preempted:
                # They stay: whoever they would have ended for waits, and looks no further.
                return

    def _units(self) -> Iterator[AdmissionUnit]:
        for name, group in self._groups.items():
            active = {_key(pod): pod.requests() for pod in self._pods[name] if _key(pod) in self._in}
            waiting = [pod for pod in self._pods[name] if _key(pod) not in self._in]
            yield from units_of_group(name, group, waiting, active, UnitOrder(group.queue, self._ranks.get(name, 0)))


def _key(pod: GroupPod) -> str:
    return "/".join(pod.metadata.key)
