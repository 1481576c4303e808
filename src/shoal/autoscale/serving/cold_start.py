"""How long a new replica takes until it serves, phase by phase, from measured starts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

PHASES = ("node", "image", "weights", "warm_up")
"""From the request of a node to the first answer. A replica on a node that is there has no first phase."""
_KEPT = 20
_PART = 0.9


class ColdStart(Struct, frozen=True):
    """The last measured starts of a model; the newest is the last."""

    measured_s: Mapping[str, tuple[float, ...]] = {}

    def with_start(self, phases_s: Mapping[str, float]) -> ColdStart:
        """Phases that a start did not have are not recorded."""
        found = dict(self.measured_s)
        for phase in PHASES:
            seconds = phases_s.get(phase)
            if seconds is not None and math.isfinite(seconds) and seconds >= 0:
                found[phase] = (*found.get(phase, ()), seconds)[-_KEPT:]
        return ColdStart(found)

    def phase_s(self, phase: str) -> float:
        """What nine of ten starts need at most."""
        return _high(self.measured_s.get(phase, ()))

    def total_s(self) -> float:
        return sum(self.phase_s(phase) for phase in PHASES)


def _high(measured: Sequence[float]) -> float:
    if not measured:
        return 0.0
    ordered = sorted(measured)
    return ordered[min(math.ceil(_PART * len(ordered)), len(ordered)) - 1]
