"""Holds what a scheduling session knows of a job: its pods by state, and the minima of its gang.

The counts are Volcano's. Pods that are bound or have been given a node in the session are ready, pods with promised
capacity are pipelined, terminating pods count for nothing. Pending pods that request nothing count as ready: a later
action places them on any node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from shoal.engine.charges import Charge
from shoal.engine.gang_members import Gang
from shoal.engine.groups import GroupFacts
from shoal.engine.queues.disciplines.volcano.amounts import Figures, add


class JobFacts(msgspec.Struct, frozen=True):
    """A pod group as the scheduler reads it, beside the gang's facts."""

    name: str
    """namespace/name."""
    queue: str
    priority: int | None = None
    """None: that of its priority class, else the highest of its pods."""
    created_s: float = 0.0
    min_resources: Figures | None = None
    is_enqueued: bool = True
    """Whether its queue has admitted it."""
    reserves: bool = True
    """Whether quota is kept for what it has not started of its `minResources`."""
    waiting_time_s: float | None = None
    """The sla-waiting-time of its own."""
    has_failed: bool = False
    """Whether a pod of it has failed."""

    @property
    def namespace(self) -> str:
        return self.name.partition("/")[0]


class PodOfJob(msgspec.Struct, frozen=True, eq=False):
    """A pod that the scheduler may place or evict."""

    key: str
    job: str
    amounts: Figures
    charge: Charge
    priority: int = 0
    order: int = 0
    turn: int = 0
    role: str = ""
    part: str = ""
    is_preemptible: bool = True
    """Whether it runs and may be evicted for others."""
    yields: bool = True
    """Whether it may be evicted once it runs."""
    preempts: bool = True
    is_best_effort: bool = False
    since_s: float = 0.0


class JobState:
    """One job in a session."""

    __slots__ = (
        "allocated",
        "best_effort",
        "facts",
        "gang",
        "lost_work",
        "minimum",
        "occupied",
        "pending",
        "pipelined",
        "priority",
        "ran",
        "ready",
        "roles",
        "total",
        "turn",
    )

    def __init__(self, facts: JobFacts, gang: Gang) -> None:
        self.facts = facts
        self.gang = gang
        group = gang.facts
        self.turn = gang.turn or 0
        self.priority = facts.priority or 0
        self.minimum = 0 if group is None else group.minimum
        roles = () if group is None else group.roles
        # Role minima hold only within the minimum of the group.
        self.roles: Mapping[str, int] = dict(roles) if sum(least for _, least in roles) <= self.minimum else {}
        self.ready: dict[str, PodOfJob] = {}
        self.pipelined: dict[str, PodOfJob] = {}
        self.pending: dict[str, PodOfJob] = {}
        """In the order in which they are tried; without the pods that request nothing."""
        self.best_effort: dict[str, PodOfJob] = {}
        self.occupied: Counter[str] = Counter()
        """Ready pods by role."""
        self.allocated: dict[str, float] = {}
        self.total = 0
        """Pods in any state."""
        self.ran = 0
        """Pods that were ready when the session opened."""
        self.lost_work = 0
        """What is lost if they all are stopped."""

    def add_ready(self, pod: PodOfJob) -> None:
        self.ready[pod.key] = pod
        self.occupied[pod.role] += 1
        add(self.allocated, pod.amounts)

    def drop_ready(self, pod: PodOfJob) -> None:
        del self.ready[pod.key]
        self.occupied[pod.role] -= 1
        add(self.allocated, pod.amounts, -1)

    def add_pipelined(self, pod: PodOfJob) -> None:
        self.pipelined[pod.key] = pod
        add(self.allocated, pod.amounts)

    def drop_pipelined(self, pod: PodOfJob) -> None:
        del self.pipelined[pod.key]
        add(self.allocated, pod.amounts, -1)

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def queue(self) -> str:
        return self.facts.queue

    @property
    def reserves(self) -> bool:
        """Whether quota is kept for what it has not started: not once too many of its pods have failed."""
        facts = self.facts
        is_hopeless = facts.has_failed and self.total < self.minimum
        return facts.is_enqueued and facts.reserves and not is_hopeless

    @property
    def valid(self) -> int:
        """Pods that count towards the minimum, or may."""
        return len(self.ready) + len(self.pipelined) + len(self.pending) + len(self.best_effort)

    @property
    def can_have_roles(self) -> bool:
        """Whether enough pods of each role exist."""
        pods = (*self.pipelined.values(), *self.pending.values())
        return not self.roles or self.has_roles(self.occupied + Counter(pod.role for pod in pods))

    @property
    def is_ready(self) -> bool:
        return len(self.ready) + len(self.best_effort) >= self.minimum and self.has_roles(self.occupied)

    @property
    def is_at_minimum(self) -> bool:
        """Whether it is ready, without regard to roles."""
        return len(self.ready) + len(self.best_effort) >= self.minimum

    @property
    def is_pipelined(self) -> bool:
        """Whether it would be ready with the capacity that it was promised."""
        found = len(self.ready) + len(self.pipelined) + len(self.best_effort)
        if found < self.minimum:
            return False
        return not self.roles or self.has_roles(self.occupied + Counter(pod.role for pod in self.pipelined.values()))

    @property
    def loses(self) -> float:
        """The work that is lost with what the job gives up next: a pod above its minimum, or all of it. Counted on the
        pods with which the session began, so that trials do not change the order of victims."""
        return self.lost_work / self.ran if len(self.ready) > self.minimum and self.ran else self.lost_work

    @property
    def is_starving(self) -> bool:
        return len(self.ready) + len(self.pipelined) < self.minimum

    @property
    def has_topology(self) -> bool:
        """Whether the pods, or parts of the job, must be close to each other."""
        group = self.gang.facts
        return group is not None and (
            not group.requirement.is_empty or any(not part.requirement.is_empty for part in group.parts)
        )

    @property
    def has_parts(self) -> bool:
        return self.gang.facts is not None and bool(self.gang.facts.parts)

    def has_roles(self, occupied: Mapping[str, int]) -> bool:
        if not self.roles:
            return True
        waiting = Counter(pod.role for pod in self.best_effort.values())
        return all(occupied.get(role, 0) + waiting[role] >= least for role, least in self.roles.items())

    def may_still_be_ready(self, failed: Mapping[str, int]) -> bool:
        """Whether the job can reach its minima when so many pods of each role found no node."""
        lost = sum(failed.values())
        if not self.roles:
            return self.minimum <= self.valid - lost
        waiting = Counter(pod.role for pod in (*self.pending.values(), *self.best_effort.values()))
        return self.minimum <= self.valid - lost and all(
            self.occupied[role] + waiting[role] - failed.get(role, 0) >= least for role, least in self.roles.items()
        )

    def group_facts(self, *, holds_minimum: bool) -> GroupFacts:
        """The gang's facts for the search of nodes. `holds_minimum`: whether the hooks of the gang plugin are on."""
        group = self.gang.facts
        if group is None:
            return GroupFacts(self.name)
        minimum = max(self.minimum - len(self.best_effort), 0) if holds_minimum else 0
        roles: tuple[tuple[str, int], ...] = ()
        if holds_minimum:
            waiting = Counter(pod.role for pod in self.best_effort.values())
            roles = tuple((role, least - waiting[role]) for role, least in self.roles.items() if least > waiting[role])
        return msgspec.structs.replace(group, minimum=minimum, roles=roles)
