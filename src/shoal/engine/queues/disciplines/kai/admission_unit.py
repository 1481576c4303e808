"""Defines the unit of admission: a pod group up to its minimum, each pod beyond it, or a pod without a group.

A gang is admitted whole and preempted whole. Its pods beyond the minimum are admitted and preempted one by one. The
replacements for the pods that a gang lost below its minimum are admitted together: one alone would not help.

No state survives a restart: the pods on nodes show which units are admitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from shoal.engine.asks import Ask
from shoal.engine.device_demand import MigTiles
from shoal.engine.events import PodArrived, PodBound
from shoal.engine.queues.disciplines.kai.objects import FIRST_NON_PREEMPTIBLE_PRIORITY
from shoal.engine.queues.disciplines.kai.queue_quotas import FLAVOR, KINDS, local_queue_key, usage_of
from shoal.engine.queues.facts import Amounts, BudgetUse, PodSet, PodSetAdmission, QuotaAssignment, WorkloadFacts

_NEVER_PREEMPTED = (BudgetUse("never-preempted", 1, 0),)
SURPLUS = "+"
"""Key suffix: alone for the replacements of a gang, followed by a pod for that pod beyond the minimum."""
_COMPUTE = re.compile(r"(?:^|[-.])([1-9][0-9]?)g\b", re.ASCII)


class GangSpec(msgspec.Struct, frozen=True):
    """The scheduling requirements of a pod group or a single pod."""

    name: str
    """namespace/name of the group, or of the pod without a group."""
    queue: str
    minimum: int | None = 1
    """None: all existing pods."""
    parts: tuple[tuple[str, int], ...] = ()
    """(subgroup, minimum), if all subgroups are needed."""
    priority: int | None = None
    """None: the highest priority of its pods."""
    is_preemptible: bool | None = None
    """None: it depends on the priority of the pods."""
    is_known: bool = True
    """False for a group that does not exist yet: its pods wait for it."""

    def missing(self, pods: Iterable[PodArrived | PodBound]) -> dict[str, int]:
        """The number of missing pods by subgroup, given these pods; without subgroups under an empty name. The method
        reads no more pods than needed: a group may have thousands beyond its minimum."""
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

    def requires(self, pod: PodArrived | PodBound, beside: Iterable[PodArrived | PodBound]) -> bool:
        """Whether the pod belongs to the minimum, given the other pods."""
        return self.minimum is None or (pod.who.part if self.parts else "") in self.missing(beside)


class AdmissionUnit(msgspec.Struct, eq=False):
    key: str
    spec: GangSpec
    gang: dict[str, AdmissionUnit]
    """All units of the gang, by key."""
    created_s: float = 0.0
    waiting: dict[str, PodArrived] = {}
    """Held pods."""
    active: dict[str, PodArrived | PodBound] = {}
    """Pods in the facts, with or without a node."""
    admitted_s: float = 0.0
    evicted_s: float | None = None

    @property
    def priority(self) -> int:
        if self.spec.priority is not None:
            return self.spec.priority
        return max((event.priority for event in (*self.waiting.values(), *self.active.values())), default=0)

    @property
    def is_non_preemptible(self) -> bool:
        """Whether it is never preempted."""
        if self.spec.is_preemptible is not None:
            return not self.spec.is_preemptible
        pods = [*self.waiting.values(), *self.active.values()]
        if self.spec.priority is None:
            return any(not pod.who.is_preemptible for pod in pods)
        # The group's priority class overrides that of its pods, but not an annotation of a pod.
        is_high = self.spec.priority >= FIRST_NON_PREEMPTIBLE_PRIORITY
        return is_high or any(
            not pod.who.is_preemptible and pod.priority < FIRST_NON_PREEMPTIBLE_PRIORITY for pod in pods
        )

    @property
    def is_ready(self) -> bool:
        """Whether enough pods wait to admit the unit."""
        if not self.waiting or not self.spec.is_known:
            return False
        if self.spec.minimum is None or self.is_surplus:
            return True
        core = self.gang.get(self.spec.name)
        if core is not None and core is not self and core.is_terminating:
            return False
        return not self.spec.missing(chain(self.waiting.values(), self.staying_pods()))

    @property
    def is_surplus(self) -> bool:
        """Whether it is a pod beyond the minimum of its gang."""
        return SURPLUS in self.key[:-1]

    @property
    def pod_count(self) -> int:
        """The number of active and waiting pods of the gang."""
        return sum(1 for _ in self.staying_pods()) + sum(len(unit.waiting) for unit in self.gang.values())

    def staying_pods(self) -> Iterator[PodArrived | PodBound]:
        """The active pods of the gang that are not being deleted."""
        active = chain.from_iterable(unit.active.values() for unit in self.gang.values())
        return (pod for pod in active if not (isinstance(pod, PodBound) and pod.terminating))

    @property
    def is_terminating(self) -> bool:
        """Whether its active pods are being deleted; pods that arrive now are their replacements."""
        if self.evicted_s is not None:
            return True
        return bool(self.active) and all(isinstance(pod, PodBound) and pod.terminating for pod in self.active.values())

    def amounts(self, pods: Iterable[PodArrived | PodBound]) -> Amounts:
        found: Amounts = {}
        for pod in pods:
            for name, amount in amounts_of(pod.ask).items():
                found[name] = found.get(name, 0) + amount
        return found

    def facts(self) -> WorkloadFacts | None:
        """None while the unit neither waits nor runs."""
        runs = bool(self.active)
        if not runs and not self.is_ready:
            return None
        pods = self.active.values() if runs else self.waiting.values()
        usage = usage_of(self.amounts(pods), is_non_preemptible=self.is_non_preemptible)
        admission = None
        if runs:
            assigned = PodSetAdmission("main", 1, dict.fromkeys(KINDS, FLAVOR), usage)
            admission = QuotaAssignment(self.spec.queue, (assigned,))
        return WorkloadFacts(
            key=self.key,
            queue=local_queue_key(self.spec.queue),
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
            budgets=_NEVER_PREEMPTED if self.is_non_preemptible else (),
        )


def gang_of(key: str) -> str:
    """The gang of a unit key."""
    return key.partition(SURPLUS)[0]


def amounts_of(ask: Ask) -> Amounts:
    """The requests as KAI counts them: a MIG instance counts its compute slices."""
    gpu = ask.gpu_milli
    if isinstance(ask.devices, MigTiles):
        gpu = sum(compute_slices(profile) * count * 1000 for profile, count in ask.devices.tiles)
    return {"gpu": gpu, "cpu": ask.request("cpu"), "memory": ask.request("memory")}


def compute_slices(profile: str) -> int:
    """1, 1 and 3 for `1g.5gb`, `mig-1g.5gb` and `1c.3g.40gb`; 0 for text that is not a profile."""
    found = _COMPUTE.search(profile)
    return int(found[1]) if found is not None else 0
