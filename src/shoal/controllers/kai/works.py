"""What is let in at once: a pod group up to its minimum, each pod beyond, or a pod that has no group.

A gang is let in whole, and yields whole. What it has beyond its minimum comes and yields pod by pod. Once pods of a
group run, each pod that joins stands for itself.

Nothing is remembered across restarts: pods on nodes say which works are in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from shoal.controllers.kai.quotas import FLAVOR, KINDS, charged, door_of
from shoal.engine.asks import Ask
from shoal.engine.devices.demand import MigTiles
from shoal.engine.events import PodArrived, PodBound
from shoal.engine.queues.facts import Admission, Amounts, BudgetUse, PodSet, PodSetAdmission, WorkloadFacts

_NEVER = (BudgetUse("never-ended", 1, 0),)
_BEYOND = "+"
_COMPUTE = re.compile(r"(?:^|[-.])([1-9][0-9]?)g\b", re.ASCII)


class Origin(msgspec.Struct, frozen=True):
    """What a pod or a group says of itself."""

    name: str
    """namespace/name of the group, or of the pod where it has none."""
    queue: str
    minimum: int | None = 1
    """None: all pods that there are."""
    yields: bool | None = None
    """None: as its pods' priority says."""
    is_known: bool = True
    """False for a group that nobody has written down yet: its pods wait for it."""


class Work(msgspec.Struct, eq=False):
    key: str
    origin: Origin
    created_s: float = 0.0
    waiting: dict[str, PodArrived] = {}
    """Pods that are kept from the facts."""
    there: dict[str, PodArrived | PodBound] = {}
    """Pods that are in them, on nodes or on their way."""
    admitted_s: float = 0.0
    evicted_s: float | None = None

    @property
    def priority(self) -> int:
        return max((event.priority for event in (*self.waiting.values(), *self.there.values())), default=0)

    @property
    def is_fixed(self) -> bool:
        """It is never ended for others."""
        if self.origin.yields is not None:
            return not self.origin.yields
        return any(not event.who.yields for event in (*self.waiting.values(), *self.there.values()))

    @property
    def is_whole(self) -> bool:
        """Enough of it is there to be let in."""
        minimum = self.origin.minimum
        if not self.waiting or not self.origin.is_known:
            return False
        return minimum is None or _BEYOND in self.key or len(self.waiting) >= minimum

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


class Works:
    """`created_s` tells when a pod was created."""

    def __init__(self, created_s: Callable[[str], float]) -> None:
        self._created_s = created_s
        self.all: dict[str, Work] = {}
        self.dirty: dict[str, None] = {}
        self._of: dict[str, str] = {}
        """Pod -> work."""
        self._by_origin: dict[str, dict[str, None]] = {}

    def of_pod(self, pod: str) -> Work | None:
        return self.all.get(self._of.get(pod, ""))

    def of_origin(self, name: str) -> list[Work]:
        return [self.all[key] for key in self._by_origin.get(name, ())]

    def arrive(self, event: PodArrived, origin: Origin) -> None:
        self.leave(event.key)
        work = self._place_for(event.key, origin)
        work.waiting[event.key] = event
        self._note(event.key, work)

    def bound(self, event: PodBound, origin: Origin) -> None:
        work = self.of_pod(event.key)
        if work is None:
            work = self._place_for(event.key, origin, runs=True)
        work.waiting.pop(event.key, None)
        work.there[event.key] = event
        if not work.admitted_s:
            work.admitted_s = event.who.since_s
        self._note(event.key, work)

    def let_in(self, work: Work, now_s: float) -> list[PodArrived]:
        """All of it that waits."""
        pods = list(work.waiting.values())
        work.there.update(work.waiting)
        work.waiting.clear()
        work.admitted_s, work.evicted_s = now_s, None
        self.dirty[work.key] = None
        return pods

    def leave(self, pod: str) -> None:
        work = self.of_pod(pod)
        self._of.pop(pod, None)
        if work is None:
            return
        work.waiting.pop(pod, None)
        work.there.pop(pod, None)
        self.dirty[work.key] = None
        if not work.there:
            work.admitted_s, work.evicted_s = 0.0, None
        if not work.waiting and not work.there:
            del self.all[work.key]
            siblings = self._by_origin[work.origin.name]
            del siblings[work.key]
            if not siblings:
                del self._by_origin[work.origin.name]

    def again(self, origin: Origin) -> None:
        """The group says something else of itself."""
        for work in self.of_origin(origin.name):
            work.origin = origin
            self.dirty[work.key] = None

    # Inside

    def _note(self, pod: str, work: Work) -> None:
        self._of[pod] = work.key
        self.dirty[work.key] = None

    def _place_for(self, pod: str, origin: Origin, *, runs: bool = False) -> Work:
        first = self.all.get(origin.name)
        if first is None:
            return self._make(origin.name, origin, pod)
        has_room = origin.minimum is None or len(first.there if runs else first.waiting) < origin.minimum
        if has_room and (runs or not first.there or first.is_ending):
            return first
        return self._make(f"{origin.name}{_BEYOND}{pod.partition('/')[2]}", origin, pod)

    def _make(self, key: str, origin: Origin, pod: str) -> Work:
        found = self.all.get(key)
        if found is None:
            found = self.all[key] = Work(key, origin, self._created_s(pod), {}, {})
            self._by_origin.setdefault(origin.name, {})[key] = None
        return found
