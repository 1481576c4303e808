"""Defines the input and the output of a search for victims: the workload that needs capacity, and the victims."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.facts import FlavorResource, Usage, WorkloadFacts
from shoal.engine.queues.reasons import Yield
from shoal.engine.queues.victims.preemption_cost import PreemptionCost


class Victim(NamedTuple):
    held: AdmittedWorkload
    reason: Yield


@dataclass(slots=True, eq=False)
class PreemptionRequest:
    """A workload with flavors chosen, for which some have to yield."""

    queue: ClusterQueue
    facts: WorkloadFacts
    usage: Usage
    """All that it would be charged."""
    needs: frozenset[FlavorResource]
    """What is short: only who uses some of it is asked to yield."""
    stamp_s: float
    """The time that orders it among pending workloads."""
    fits: Callable[[], bool] | None = None
    """What else must hold once quota fits, such as a place in the topology; asked while the victims are unseated."""
    local_usage: Callable[[str], float] | None = None
    """Local queue -> what it used lately; where admission is by usage, who used more yields first."""
    preemption_cost: PreemptionCost | None = None
    """Who is spared beyond Kueue's rules, and whose end costs least."""
    fresh: AbstractSet[str] = frozenset()
    """Workloads that were admitted in the same cycle: they are no victims yet."""
