"""Defines intentions as values: controllers execute them, check them against fresh state, and report the outcome.

Every intention carries its reason's code. Evidence, words and help are computed only on request (see
`reasons`), because most refusals are never read.
"""

from __future__ import annotations

import msgspec

from shoal.engine.device_demand import DeviceGrant
from shoal.engine.reasons import Code


class Place(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Bind the pod to the node, on these devices."""

    pod: str
    node: str
    grant: DeviceGrant | None
    code: Code = Code.PLACED


class Nominate(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Promise the pod capacity that others are leaving: neither bound nor passed over."""

    pod: str
    node: str
    grant: DeviceGrant | None
    code: Code = Code.NOMINATED


class Evict(msgspec.Struct, frozen=True, gc=False, tag=True):
    """End the pod, for the sake of another pod or gang."""

    pod: str
    beneficiary: str
    """The pod or gang it yields to."""
    code: Code = Code.PREEMPTED


class Move(msgspec.Struct, frozen=True, gc=False, tag=True):
    """End the pod and let its successor start elsewhere, so that others fit."""

    pod: str
    source: str
    target: str
    grant: DeviceGrant | None
    beneficiary: str
    code: Code = Code.CONSOLIDATED


class Refuse(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The pod waits, and this is why."""

    pod: str
    code: Code


class RefuseGroup(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The gang waits, all of it, and this is why."""

    group: str
    code: Code


Intention = Place | Nominate | Evict | Move | Refuse | RefuseGroup


class Plan(msgspec.Struct, frozen=True):
    """One round's intentions, in the order in which they were decided, for facts of this version."""

    now_s: float
    version: int
    intentions: tuple[Intention, ...]
    is_cut: bool = False
    """The cycle ended before all pods were tried: another one is due at once."""

    @property
    def placed(self) -> list[Place]:
        return [intention for intention in self.intentions if isinstance(intention, Place)]

    @property
    def nominated(self) -> list[Nominate]:
        return [intention for intention in self.intentions if isinstance(intention, Nominate)]

    @property
    def evicted(self) -> list[Evict]:
        return [intention for intention in self.intentions if isinstance(intention, Evict)]

    @property
    def moved(self) -> list[Move]:
        return [intention for intention in self.intentions if isinstance(intention, Move)]

    @property
    def refused(self) -> list[Refuse]:
        return [intention for intention in self.intentions if isinstance(intention, Refuse)]

    @property
    def refused_groups(self) -> list[RefuseGroup]:
        return [intention for intention in self.intentions if isinstance(intention, RefuseGroup)]
