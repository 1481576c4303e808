"""Which printer shows which resource. The one list to add a built-in kind's columns to."""

from __future__ import annotations

from shoal.cluster.resource import Resource
from shoal.cluster.tables import custom
from shoal.cluster.tables.core import CORE
from shoal.cluster.tables.network import NETWORK
from shoal.cluster.tables.pods import PODS
from shoal.cluster.tables.policies import POLICIES
from shoal.cluster.tables.printer import Printer, heads, name_and_creation
from shoal.cluster.tables.volumes import VOLUMES
from shoal.cluster.tables.workloads import SCALE, WORKLOADS

PRINTERS: dict[tuple[str, str], Printer] = {("", "pods"): PODS, **CORE, **WORKLOADS, **NETWORK, **VOLUMES, **POLICIES}

_OTHER = Printer(heads("Name", "Created At:date"), name_and_creation)


def printer_of(resource: Resource, kind: str = "") -> Printer:
    """The printer of a resource; where `kind` is not the resource's own, of what a door below it answers."""
    if kind not in ("", resource.kind):
        return SCALE if kind == "Scale" else _OTHER
    if resource.is_custom:
        return custom.printer(resource.columns)
    return PRINTERS.get((resource.group, resource.plural), _OTHER)
