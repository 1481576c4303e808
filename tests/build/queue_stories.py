"""What happens to queues, as values, and how much of it a random story may have."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.engine.queues.facts import PODS, WorkloadFacts
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact

Shape = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
"""Resource groups of a queue: (resources, flavors)."""
ONE: Shape = ((("cpu",), ("f0",)),)
TWO: Shape = ((("cpu",), ("f0", "f1")),)
THREE: Shape = ((("cpu",), ("f1", "f0", "f2")),)
BOTH: Shape = ((("cpu", "gpu"), ("f0",)),)
BOTH_OF_TWO: Shape = ((("cpu", "gpu"), ("f0", "f1")),)
APART: Shape = ((("cpu", PODS), ("f0",)), (("gpu",), ("f1", "f2")))
SHAPES = (ONE, TWO, THREE, BOTH, BOTH_OF_TWO, APART)


@dataclass(frozen=True)
class Arrive:
    facts: WorkloadFacts


@dataclass(frozen=True)
class Finish:
    """One of those that hold something, or wait; counted through."""

    turn: int


@dataclass(frozen=True)
class Change:
    """A fact is new, or different."""

    fact: Fact


@dataclass(frozen=True)
class Gone:
    """A fact is no more."""

    kind: type[Fact]
    name: str


@dataclass(frozen=True)
class Round:
    """A cycle."""

    is_over: bool
    """Whether those that were told to stop have gone before the next thing happens."""


Happening = Arrive | Finish | Change | Gone | Round


@dataclass(frozen=True)
class Explanation:
    settings: Settings
    facts: list[Fact]
    happenings: list[Happening]


@dataclass(frozen=True)
class Bounds:
    """Which worlds to make."""

    queues: int = 5
    cohorts: int = 4
    holders: int = 7
    arrivals: int = 7
    shapes: tuple[Shape, ...] = SHAPES
    within: bool = True
    """Which of the policies for preemption are in use."""
    reclaim: bool = True
    while_borrowing: bool = True
    fair: bool | None = None
    """None is either."""
    strict: bool = True
    """Whether some queues are."""
    weights: tuple[float, ...] = (1.0, 1.0, 1.0, 0.5, 2.0, 0.0)
    reservations: bool = False
    changes: bool = True
    """Whether facts change on the way."""
    units: bool = False
    """Whether every workload asks for one core and nothing else."""
    pod_sets: int = 2
    partial: bool = True
    """Whether some would start smaller."""
