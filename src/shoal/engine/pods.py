"""Defines what the engine stores of each pod: while it is pending, and once capacity of a node is allocated to it.

`TRANSITIONS` lists the legal changes of state; tests check it against the events and cycles of the engine, and
`docs/states.md` draws it. The structs are in a module of their own because the classes that use them may be compiled
(`tools/compile_engine.py`), and mypyc does not pass on the options of a struct, such as `frozen` and `gc`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from shoal.engine.asks import Ask
from shoal.engine.charges import Charge
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity


class PodState(StrEnum):
    """What the engine knows of a pod. A pod that the engine does not know has no state."""

    PENDING = "Pending"
    """In the scheduling queue."""
    NOMINATED = "Nominated"
    """Capacity of a node is reserved; terminating pods still hold a part of it."""
    ASSUMED = "Assumed"
    """The plan binds the pod; the API server has not confirmed it."""
    ASSUMED_TERMINATING = "AssumedTerminating"
    """Assumed, and evicted by a later plan before its binding was confirmed."""
    BOUND = "Bound"
    """Bound to a node, by this scheduler or another one."""
    TERMINATING = "Terminating"
    """Bound, and being deleted or evicted: the pod holds its capacity until it is gone."""
    NODE_UNKNOWN = "NodeUnknown"
    """Bound to a node that the engine does not know, or knows no more."""


TRANSITIONS: Mapping[PodState | None, frozenset[PodState | None]] = {
    None: frozenset({PodState.PENDING, PodState.BOUND, PodState.TERMINATING, PodState.NODE_UNKNOWN}),
    PodState.PENDING: frozenset(
        {
            PodState.NOMINATED,
            PodState.ASSUMED,
            PodState.BOUND,
            PodState.TERMINATING,
            PodState.NODE_UNKNOWN,
            None,
        }
    ),
    PodState.NOMINATED: frozenset(
        {PodState.PENDING, PodState.ASSUMED, PodState.BOUND, PodState.TERMINATING, PodState.NODE_UNKNOWN, None}
    ),
    PodState.ASSUMED: frozenset(
        {
            PodState.PENDING,
            PodState.ASSUMED_TERMINATING,
            PodState.BOUND,
            PodState.TERMINATING,
            PodState.NODE_UNKNOWN,
            None,
        }
    ),
    PodState.ASSUMED_TERMINATING: frozenset(
        {PodState.PENDING, PodState.ASSUMED, PodState.TERMINATING, PodState.NODE_UNKNOWN, None}
    ),
    PodState.BOUND: frozenset({PodState.TERMINATING, PodState.NODE_UNKNOWN, None}),
    PodState.TERMINATING: frozenset({PodState.BOUND, PodState.NODE_UNKNOWN, None}),
    PodState.NODE_UNKNOWN: frozenset({PodState.BOUND, PodState.TERMINATING, None}),
}

_EVICTED = {PodState.ASSUMED: PodState.ASSUMED_TERMINATING, PodState.BOUND: PodState.TERMINATING}
_KEPT = {evicted: before for before, evicted in _EVICTED.items()}


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """A pending pod."""

    charge: Charge
    """The ask, compiled: one object per ask, so queues are found by identity."""
    priority: int
    turn: int
    has_precedence: bool = False
    """Before every priority."""
    who: PodIdentity = NO_IDENTITY
    nominated: str = ""
    """The node that was nominated for it."""
    first: int = 0
    """Sorts before the turn: made by `standing`."""

    @property
    def order(self) -> tuple[int, int]:
        return self.first, self.turn

    @property
    def order_in_gang(self) -> tuple[bool, int, int, int]:
        """Among the pods of its gang: a nominated pod comes first, so that it keeps the place for which others left."""
        return not self.nominated, self.who.order, self.first, self.turn


class PodAllocation(msgspec.Struct, gc=False):
    """A pod on a node, with the capacity that is allocated to it there."""

    row: int
    charge: Charge
    grant: DeviceGrant | None
    priority: int
    turn: int | None
    """Its position in the queue before, in case the binding is rejected."""
    state: PodState
    has_precedence: bool = False
    """In the queue the pod came before every priority."""
    daemon_set: str = ""
    who: PodIdentity = NO_IDENTITY
    guessed: bool = False
    """Its devices are not known: the grant contains those that it most likely holds."""

    @property
    def ask(self) -> Ask:
        return self.charge.ask

    @property
    def is_nominated(self) -> bool:
        return self.state is PodState.NOMINATED

    @property
    def is_bound(self) -> bool:
        """Whether the API server has confirmed the binding; otherwise the pod is only part of a plan."""
        return self.state is PodState.BOUND or self.state is PodState.TERMINATING

    @property
    def is_terminating(self) -> bool:
        return self.state is PodState.TERMINATING or self.state is PodState.ASSUMED_TERMINATING

    def confirm_binding(self) -> None:
        self.state = PodState.TERMINATING if self.is_terminating else PodState.BOUND

    def mark_terminating(self, terminating: bool) -> None:
        self.state = (_EVICTED if terminating else _KEPT).get(self.state, self.state)
