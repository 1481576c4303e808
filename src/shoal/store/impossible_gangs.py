"""Detects gangs that can never be complete according to their own controller: more pods will not come, so waiting does
not help.

Called only while pods are missing: a complete gang runs, whatever its controller declares.
"""

from __future__ import annotations

from shoal.api.workloads import Job, StatefulSet
from shoal.store.inventory import Inventory, Placed
from shoal.store.pod_makers import GANG, Owner
from shoal.units.errors import UserError

_PARALLEL = "Parallel"


def why_impossible(minimum: int, owner: Owner, inventory: Inventory) -> UserError | None:
    """A message about a controller that is marked as a gang and cannot be one."""
    makers: list[Placed[Job] | Placed[StatefulSet]] = [*inventory.of(Job), *inventory.of(StatefulSet)]
    for placed in makers:
        meta = placed.value.metadata
        if (meta.namespace, type(placed.value).__name__, meta.name) == owner and GANG in meta.annotations:
            return _fault(minimum, placed)
    return None


def _fault(minimum: int, placed: Placed[Job] | Placed[StatefulSet]) -> UserError | None:
    value, where = placed.value, placed.where
    if isinstance(value, StatefulSet):
        if value.spec.pod_management_policy != _PARALLEL and minimum > 1:
            return UserError(
                f"its pods come one after the other, and the gang needs {minimum} at once",
                where=where.with_path("spec.podManagementPolicy"),
                fix=f"write podManagementPolicy: {_PARALLEL}, or take {GANG} off",
            )
        most, field = value.spec.replicas, "replicas"
    else:
        most, field = value.spec.parallelism, "parallelism"
    if minimum <= most:
        return None
    return UserError(
        f"the gang needs {minimum} pods, and spec.{field} is {most}",
        where=where.with_path("metadata.annotations").key(GANG),
        fix=f"raise {field}, or lower the annotation to {most}",
    )
