"""What the engine wants done, as values: the world carries it out, re-checks on fresh state and reports back.

Every intention carries its reason's code. Evidence, words and help are looked up only when somebody asks (see
`reasons`), because most refusals of most rounds are read by nobody.
"""

from __future__ import annotations

import msgspec

from shoal.engine.devices.demand import Grant
from shoal.engine.reasons import Code


class Place(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Bind the pod to the node, on these devices."""

    pod: str
    node: str
    grant: Grant | None
    code: Code = Code.PLACED


class Refuse(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The pod waits, and this is why."""

    pod: str
    code: Code


Intention = Place | Refuse


class Plan(msgspec.Struct, frozen=True):
    """One round's intentions, in the order in which they were decided, for facts of this version."""

    now_s: float
    version: int
    intentions: tuple[Intention, ...]

    @property
    def placed(self) -> list[Place]:
        return [intention for intention in self.intentions if isinstance(intention, Place)]

    @property
    def refused(self) -> list[Refuse]:
        return [intention for intention in self.intentions if isinstance(intention, Refuse)]
