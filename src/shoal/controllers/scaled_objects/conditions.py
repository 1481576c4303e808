"""Merges conditions into those of a ScaledObject. KEDA's conditions have no times."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.api.conditions import Condition
from shoal.client.item import Obj


def with_conditions(before: Sequence[Obj], changed: Sequence[Condition]) -> list[Obj]:
    found = {str(one.get("type")): one for one in before}
    for one in changed:
        found[one.type] = {"type": one.type, "status": one.status, "reason": one.reason, "message": one.message}
    return list(found.values())
