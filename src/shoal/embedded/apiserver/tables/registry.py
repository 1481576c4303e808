"""Lists the table printer of each resource. The one list to add a built-in kind's columns to."""

from __future__ import annotations

from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.tables import custom
from shoal.embedded.apiserver.tables.core import CORE
from shoal.embedded.apiserver.tables.network import NETWORK
from shoal.embedded.apiserver.tables.pods import PODS
from shoal.embedded.apiserver.tables.policies import POLICIES
from shoal.embedded.apiserver.tables.printer import Printer, heads, name_and_creation
from shoal.embedded.apiserver.tables.volumes import VOLUMES
from shoal.embedded.apiserver.tables.workloads import SCALE, WORKLOADS

PRINTERS: dict[tuple[str, str], Printer] = {("", "pods"): PODS, **CORE, **WORKLOADS, **NETWORK, **VOLUMES, **POLICIES}

_OTHER = Printer(heads("Name", "Created At:date"), name_and_creation)


def printer_of(resource: Resource, kind: str = "") -> Printer:
    """The printer of a resource; where `kind` is not the resource's own, of what a door below it answers."""
    if kind not in ("", resource.kind):
        return SCALE if kind == "Scale" else _OTHER
    if resource.is_custom:
        return custom.printer(resource.columns)
    return PRINTERS.get((resource.group, resource.plural), _OTHER)
