"""Taints of single devices, and what in a claim lets it have them all the same.

The rules are those of node taints with one effect more: `None` only informs, and keeps no pod away. There is
no `PreferNoSchedule`, so a taint either matters or does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from shoal.api.taints import check_taint_key, check_taint_value, check_toleration_key
from shoal.api.wire import ApiStruct, Timestamp
from shoal.units.errors import UserError, Where

MOST_TAINTS = 16
MOST_TOLERATIONS = 16


class DeviceTaint(ApiStruct, frozen=True):
    key: str
    effect: Literal["NoSchedule", "NoExecute", "None"]
    value: str = ""
    time_added: Timestamp | None = None

    def keeps_away(self) -> bool:
        return self.effect != "None"


class DeviceToleration(ApiStruct, frozen=True):
    key: str = ""
    operator: Literal["Exists", "Equal", ""] = "Equal"
    value: str = ""
    effect: Literal["NoSchedule", "NoExecute", "None", ""] = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: DeviceTaint) -> bool:
        """An empty effect represents all effects, an empty key for all keys."""
        if self.effect not in {"", taint.effect} or self.key not in {"", taint.key}:
            return False
        return self.operator == "Exists" or self.value == taint.value

    def check(self, where: Where) -> None:
        check_toleration_key(self.key, self.operator, where)
        if self.operator == "Exists" and self.value:
            raise UserError("value must be empty when operator is Exists", where=where.below("value"))
        check_taint_value(self.value, where.below("value"))
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise UserError("effect must be NoExecute when tolerationSeconds is set", where=where.below("effect"))


def check_device_taints(taints: tuple[DeviceTaint, ...], where: Where) -> None:
    if len(taints) > MOST_TAINTS:
        raise UserError(f"must have at most {MOST_TAINTS} items, got {len(taints)}", where=where)
    for index, taint in enumerate(taints):
        here = where.below(f"[{index}]")
        check_taint_key(taint.key, here.below("key"))
        check_taint_value(taint.value, here.below("value"))


def is_kept_away(taints: Iterable[DeviceTaint], tolerations: Iterable[DeviceToleration]) -> bool:
    """Whether some taint that matters is tolerated by none of these."""
    tolerations = tuple(tolerations)
    return any(taint.keeps_away() and not any(t.tolerates(taint) for t in tolerations) for taint in taints)
