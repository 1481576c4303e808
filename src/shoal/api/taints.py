"""Taints repel pods from nodes; tolerations let a pod stay. Types, matching and the API server's checks.

A pod may land where every NoSchedule and NoExecute taint is tolerated; PreferNoSchedule taints left over
only cost points. `Lt` and `Gt` compare the *taint's* value with the toleration's: `Gt` "50" tolerates a
taint of 60.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Literal, assert_never

from shoal.api.names import label_key_fault, label_value_fault
from shoal.api.requirement import as_int64
from shoal.api.wire import ApiStruct, Timestamp
from shoal.units.errors import UserError, Where, excerpt

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]

HARD_EFFECTS: frozenset[str] = frozenset({"NoSchedule", "NoExecute"})
SOFT_EFFECTS: frozenset[str] = frozenset({"PreferNoSchedule"})

# `0100` and `+5` are numbers too, but the API server wants one spelling for one bound.
_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


class Taint(ApiStruct, frozen=True):
    key: str
    effect: Effect
    value: str = ""
    time_added: Timestamp | None = None

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


# What a scheduler sees in `spec.unschedulable: true`: pods that tolerate it may use cordoned nodes.
UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "NoSchedule")


class Toleration(ApiStruct, frozen=True):
    key: str = ""
    operator: Literal["Exists", "Equal", "Lt", "Gt", ""] = "Equal"
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """An empty effect represents all effects, an empty key for all keys."""
        if self.effect not in {"", taint.effect} or self.key not in {"", taint.key}:
            return False
        match self.operator:
            case "Exists":
                return True
            case "Equal" | "":
                return self.value == taint.value
            case "Lt" | "Gt":
                bound, value = as_int64(self.value), as_int64(taint.value)
                if bound is None or value is None:
                    return False
                return value < bound if self.operator == "Lt" else value > bound
            case _:
                assert_never(self.operator)

    def check(self, where: Where) -> None:
        check_toleration_key(self.key, self.operator, where)
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise UserError("effect must be NoExecute when tolerationSeconds is set", where=where.below("effect"))
        self._check_value(where.below("value"))

    def _check_value(self, where: Where) -> None:
        match self.operator:
            case "Exists":
                if self.value:
                    raise UserError("value must be empty when operator is Exists", where=where)
            case "Equal" | "":
                check_taint_value(self.value, where)
            case "Lt" | "Gt":
                if not _PLAIN_INTEGER.fullmatch(self.value) or as_int64(self.value) is None:
                    raise UserError(
                        f"operator {self.operator} needs a plain whole number of 64 bits, got {excerpt(self.value)}",
                        where=where,
                    )
            case _:
                assert_never(self.operator)


def untolerated(
    taints: Iterable[Taint],
    tolerations: Collection[Toleration],
    effects: Collection[str] = HARD_EFFECTS,
) -> Taint | None:
    """The first taint of these effects that no toleration covers: the one to name in a refusal."""
    for taint in taints:
        if taint.effect in effects and not any(t.tolerates(taint) for t in tolerations):
            return taint
    return None


def count_untolerated(
    taints: Iterable[Taint],
    tolerations: Collection[Toleration],
    effects: Collection[str] = SOFT_EFFECTS,
) -> int:
    """How many are left over; of the soft kind this is what a score counts against the node."""
    return sum(taint.effect in effects and not any(t.tolerates(taint) for t in tolerations) for taint in taints)


def check_taints(taints: Iterable[Taint], where: Where) -> None:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        here = where.below(f"[{index}]")
        check_taint_key(taint.key, here.below("key"))
        check_taint_value(taint.value, here.below("value"))
        if (taint.key, taint.effect) in seen:
            raise UserError(f"duplicate taint {taint.key}:{taint.effect}", where=here)
        seen.add((taint.key, taint.effect))


def check_toleration_key(key: str, operator: str, where: Where) -> None:
    """Of tolerations of nodes' taints and of devices' alike."""
    if key:
        check_taint_key(key, where.below("key"))
    elif operator != "Exists":
        raise UserError("operator must be Exists when key is empty", where=where.below("operator"))


def check_taint_key(key: str, where: Where) -> None:
    if fault := label_key_fault(key):
        raise UserError(f"{excerpt(key)} is not a taint key: {fault}", where=where)


def check_taint_value(value: str, where: Where) -> None:
    if fault := label_value_fault(value):
        raise UserError(f"{excerpt(value)} is not a taint value: {fault}", where=where)
