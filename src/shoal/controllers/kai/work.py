"""What is let in at once: a pod group up to its minimum, each pod beyond, or a pod that has no group.

A gang is let in whole, and yields whole. What it has beyond its minimum comes and yields pod by pod. A gang that lost
so many pods that it is below its minimum takes their successors together: one alone would have no place.

Nothing is remembered across restarts: pods on nodes say which works are in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from shoal.controllers.kai.quotas import FLAVOR, KINDS, charged, door_of
from shoal.engine.asks import Ask
from shoal.engine.devices.demand import MigTiles
from shoal.engine.events import PodArrived, PodBound
from shoal.engine.from_api.standing import FIRST_KAI_LASTING
from shoal.engine.queues.facts import Admission, Amounts, BudgetUse, PodSet, PodSetAdmission, WorkloadFacts

_NEVER = (BudgetUse("never-ended", 1, 0),)
BEYOND = "+"
"""Alone: those who make a gang whole again; with a pod: that one, beyond the minimum."""
_COMPUTE = re.compile(r"(?:^|[-.])([1-9][0-9]?)g\b", re.ASCII)


class Origin(msgspec.Struct, frozen=True):
    """What a pod or a group says of itself."""

    name: str
    """namespace/name of the group, or of the pod where it has none."""
    queue: str
    minimum: int | None = 1
    """None: all pods that there are."""
    parts: tuple[tuple[str, int], ...] = ()
    """(part, least pods), where all of them are needed."""
    priority: int | None = None
    """None: the highest of its pods."""
    yields: bool | None = None
    """None: as its pods' priority says."""
    is_known: bool = True
    """False for a group that nobody has written down yet: its pods wait for it."""

    def lacks(self, pods: Iterable[PodArrived | PodBound]) -> dict[str, int]:
        """How many are missing beside these, by part; of a group without parts all in one. Looks at no more pods than
        are needed: a group may have thousands beyond."""
        counts = dict(self.parts) if self.parts else {"": self.minimum or 0}
        counts = {part: count for part, count in counts.items() if count > 0}
        for pod in pods if counts else ():
            part = pod.who.part if self.parts else ""
            if part in counts:
                counts[part] -= 1
                if not counts[part]:
                    del counts[part]
                    if not counts:
                        break
        return counts

    def needs(self, pod: PodArrived | PodBound, beside: Iterable[PodArrived | PodBound]) -> bool:
        """Whether the pod belongs to the least that there has to be."""
        return self.minimum is None or (pod.who.part if self.parts else "") in self.lacks(beside)


class Work(msgspec.Struct, eq=False):
    key: str
    origin: Origin
    gang: dict[str, Work]
    """All works of that origin, by key."""
    created_s: float = 0.0
    waiting: dict[str, PodArrived] = {}
    """Pods that are kept from the facts."""
    there: dict[str, PodArrived | PodBound] = {}
    """Pods that are in them, on nodes or on their way."""
    admitted_s: float = 0.0
    evicted_s: float | None = None

    @property
    def priority(self) -> int:
        if self.origin.priority is not None:
            return self.origin.priority
        return max((event.priority for event in (*self.waiting.values(), *self.there.values())), default=0)

    @property
    def is_fixed(self) -> bool:
        """It is never ended for others."""
        if self.origin.yields is not None:
            return not self.origin.yields
        pods = [*self.waiting.values(), *self.there.values()]
        if self.origin.priority is None:
            return any(not pod.who.yields for pod in pods)
        # The group's class goes before its pods'; what somebody wrote on a pod stands.
        is_high = self.origin.priority >= FIRST_KAI_LASTING
        return is_high or any(not pod.who.yields and pod.priority < FIRST_KAI_LASTING for pod in pods)

    @property
    def is_whole(self) -> bool:
        """Enough of it is there to be let in."""
        if not self.waiting or not self.origin.is_known:
            return False
        if self.origin.minimum is None or self.is_beyond:
            return True
        core = self.gang.get(self.origin.name)
        if core is not None and core is not self and core.is_ending:
            return False
        return not self.origin.lacks(chain(self.waiting.values(), self.standing()))

    @property
    def is_beyond(self) -> bool:
        """Of a gang that has what it needs."""
        return BEYOND in self.key[:-1]

    @property
    def exist(self) -> int:
        """Pods of the gang that are there or wait."""
        return sum(1 for _ in self.standing()) + sum(len(work.waiting) for work in self.gang.values())

    def standing(self) -> Iterator[PodArrived | PodBound]:
        """The pods of the gang that are there and stay."""
        there = chain.from_iterable(work.there.values() for work in self.gang.values())
        return (pod for pod in there if not (isinstance(pod, PodBound) and pod.leaving))

    @property
    def is_ending(self) -> bool:
        """What of it is there is on its way out; who comes now is its successor."""
        if self.evicted_s is not None:
            return True
        return bool(self.there) and all(isinstance(pod, PodBound) and pod.leaving for pod in self.there.values())

    def amounts(self, pods: Iterable[PodArrived | PodBound]) -> Amounts:
        found: Amounts = {}
        for pod in pods:
            for name, amount in amounts_of(pod.ask).items():
                found[name] = found.get(name, 0) + amount
        return found

    def facts(self) -> WorkloadFacts | None:
        """None while it neither waits nor runs."""
        runs = bool(self.there)
        if not runs and not self.is_whole:
            return None
        pods = self.there.values() if runs else self.waiting.values()
        usage = charged(self.amounts(pods), is_fixed=self.is_fixed)
        admission = None
        if runs:
            assigned = PodSetAdmission("main", 1, dict.fromkeys(KINDS, FLAVOR), usage)
            admission = Admission(self.origin.queue, (assigned,))
        return WorkloadFacts(
            key=self.key,
            queue=door_of(self.origin.queue),
            priority=self.priority,
            created_s=self.created_s,
            uid=self.key,
            pod_sets=(PodSet("main", 1, requests=usage),),
            admission=admission,
            admitted=runs,
            admitted_s=self.admitted_s,
            reserved_s=self.admitted_s,
            evicted_s=self.evicted_s if runs else None,
            evicted_why="Preempted" if runs and self.evicted_s is not None else "",
            budgets=_NEVER if self.is_fixed else (),
        )


def gang_of(key: str) -> str:
    """The name of the origin whose work is called so."""
    return key.partition(BEYOND)[0]


def amounts_of(ask: Ask) -> Amounts:
    """As KAI counts: of a GPU that is cut up, an instance counts the slices of compute that it has."""
    gpu = ask.gpu_milli
    if isinstance(ask.devices, MigTiles):
        gpu = sum(_slices(profile) * count * 1000 for profile, count in ask.devices.tiles)
    return {"gpu": gpu, "cpu": ask.request("cpu"), "memory": ask.request("memory")}


def _slices(profile: str) -> int:
    """Of `1g.5gb`, `mig-1g.5gb` and `1c.3g.40gb` 1, 1 and 3; none of what is no profile: users write what they like."""
    found = _COMPUTE.search(profile)
    return int(found[1]) if found is not None else 0
