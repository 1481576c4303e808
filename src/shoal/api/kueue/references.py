"""Names of flavors, cohorts, queues and topologies by which Kueue's objects refer to each other."""

from __future__ import annotations

from shoal.api.names import object_name_fault
from shoal.units.errors import UserError, Where, excerpt


def check_reference(name: str, where: Where) -> None:
    if not name:
        raise UserError("is required", where=where)
    if fault := object_name_fault(name):
        raise UserError(f"{excerpt(name)} is not a name: {fault}", where=where)
