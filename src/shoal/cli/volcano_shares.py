"""Which pods Volcano's queues keep back by what they deserve, in a set of manifests: their own tree decides, by quota.

Rejected: ending others for those whom a queue owes room. On a cluster that takes pods that end and others that come; of
a picture it is said that somebody has to give back, and nobody is placed on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shoal.controllers.volcano.phases import NOT_ENOUGH_RESOURCES
from shoal.controllers.volcano.shares import Shares
from shoal.controllers.volcano.sights import GroupPod, PodGroup
from shoal.controllers.volcano.units import Turn, Unit, by_right, units_of
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues
from shoal.store.kept import Kept

_MOST_CYCLES = 10_000
_OWED = "others would have to give back what they have beyond what they deserve; not decided on files"


def kept_by_shares(
    shares: Shares,
    groups: Mapping[str, PodGroup],
    members: Mapping[str, Sequence[GroupPod]],
    ranks: Mapping[str, int],
) -> dict[str, Kept]:
    """By pod, of the groups that were let in; none where nobody said how queues share."""
    if not shares.are_wanted:
        return {}
    book = _Book(shares, groups, members, ranks)
    while book.let_in():
        pass
    return book.kept()


class _Book:
    def __init__(
        self,
        shares: Shares,
        groups: Mapping[str, PodGroup],
        members: Mapping[str, Sequence[GroupPod]],
        ranks: Mapping[str, int],
    ) -> None:
        self._shares = shares
        self._kueue = Kueue(Queues(shares.settings))
        for fact in shares.facts():
            self._kueue.queues.put(fact)
        self._kueue.queues.refresh()
        known = self._kueue.queues.cluster_queues
        self._groups = {name: group for name, group in groups.items() if group.queue in known}
        self._pods = {name: [pod for pod in members.get(name, ()) if not pod.has_ended] for name in self._groups}
        self._ranks = ranks
        self._in = {_key(pod) for pods in self._pods.values() for pod in pods if pod.spec.node_name}
        """Pods that have a place, or may look for one."""
        self._owed: set[str] = set()
        """Units for whose sake others would have to give something back."""

    def let_in(self) -> bool:
        """Whoever has quota; whether there was anybody. What groups have beyond their minimum comes after it."""
        units = {unit.key: unit for unit in self._units()}
        before = len(self._in)
        for unit in units.values():
            if unit.there:
                self._kueue.put_workload(unit.facts(self._shares, None, yields=True), 0.0)
        for turn in by_right(self._shares, units.values()):
            for unit in turn:
                self._kueue.put_workload(unit.facts(self._shares, None, yields=True), 0.0)
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

    def _cycles(self, units: Mapping[str, Unit]) -> None:
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

    def _units(self) -> Iterator[Unit]:
        for name, group in self._groups.items():
            there = {_key(pod): pod.requests() for pod in self._pods[name] if _key(pod) in self._in}
            waiting = [pod for pod in self._pods[name] if _key(pod) not in self._in]
            yield from units_of(name, group, waiting, there, Turn(group.queue, self._ranks.get(name, 0)))


def _key(pod: GroupPod) -> str:
    return "/".join(pod.metadata.key)
