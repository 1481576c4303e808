"""Computes how long a pod may stay on a node with given taints. The functions are pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from shoal.client.node_health import Taint

FOR_EVER = math.inf


class Toleration(msgspec.Struct, rename="camel", frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        match self.operator or "Equal":
            case "Exists":
                return True
            case "Equal":
                return self.value == taint.value
            case "Lt" | "Gt":
                return self._compares(taint)
        return False

    def _compares(self, taint: Taint) -> bool:
        try:
            own, there = int(self.value), int(taint.value)
        except ValueError:
            return False
        return there < own if self.operator == "Lt" else there > own


def toleration_time_s(tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> float:
    """0: the pod is deleted at once. Each taint needs a toleration; the shortest of the used tolerations counts."""
    shortest = FOR_EVER
    for taint in taints:
        used = [one for one in tolerations if one.tolerates(taint)]
        if not used:
            return 0.0
        seconds = (one.toleration_seconds for one in used if one.toleration_seconds is not None)
        shortest = min(shortest, *(max(float(one), 0.0) for one in seconds), FOR_EVER)
    return shortest
