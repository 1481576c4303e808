"""Lists all objects that a ClusterPolicy asks for, by state and in the order of the states.

The objects of every state are written at once. On each node, the init containers of a later state wait for the files of
the earlier ones, so that a node with a broken driver does not delay the other nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from shoal.operator.components.build import Building
from shoal.operator.components.component import (
    COMPONENTS,
    DCGM,
    DISCOVERY,
    DRIVER,
    EXPORTER,
    FEATURES,
    MIG_MANAGER,
    MPS,
    PLUGIN,
    SANDBOX_VALIDATOR,
    STATUS_EXPORTER,
    TOOLKIT,
    VALIDATOR,
    Component,
)
from shoal.operator.components.driver import driver_objects
from shoal.operator.components.exporter import dcgm_objects, exporter_objects, status_exporter_objects
from shoal.operator.components.mig_manager import mig_manager_objects
from shoal.operator.components.plugin import discovery_objects, feature_objects, mps_objects, plugin_objects
from shoal.operator.components.prerequisites import namespace_labels, runtime_classes
from shoal.operator.components.sandbox import SANDBOX_PARTS, sandbox_objects
from shoal.operator.components.toolkit import toolkit_objects
from shoal.operator.components.validator import sandbox_validator_objects, validator_objects
from shoal.operator.policy.operands import Obj
from shoal.units.errors import UserError

PREREQUISITES = "pre-requisites"
_BUILDERS: dict[Component, Callable[[Building], list[Obj]]] = {
    DISCOVERY: discovery_objects,
    DRIVER: driver_objects,
    TOOLKIT: toolkit_objects,
    VALIDATOR: validator_objects,
    PLUGIN: plugin_objects,
    MPS: mps_objects,
    DCGM: dcgm_objects,
    EXPORTER: exporter_objects,
    FEATURES: feature_objects,
    MIG_MANAGER: mig_manager_objects,
    STATUS_EXPORTER: status_exporter_objects,
    SANDBOX_VALIDATOR: sandbox_validator_objects,
    **{one.component: partial(sandbox_objects, part=one) for one in SANDBOX_PARTS},
}


class DesiredState(msgspec.Struct, frozen=True):
    name: str
    objects: tuple[Obj, ...] = ()
    """Empty: the state is disabled."""
    component: Component | None = None
    fault: str = ""
    """Why its objects cannot be built. What exists of it is kept."""


def desired_states(build: Building) -> list[DesiredState]:
    """A field that is impossible for one component does not keep the others from being built."""
    found = [DesiredState(PREREQUISITES, (*namespace_labels(build), *runtime_classes(build)))]
    for component in COMPONENTS:
        try:
            objects = tuple(_BUILDERS[component](build))
        except UserError as error:
            found.append(DesiredState(component.state, (), component, str(error)))
        else:
            found.append(DesiredState(component.state, objects, component))
    return found


def images(states: Iterable[DesiredState]) -> list[str]:
    """Each image of the pods once, in the order of the states, for sites without access to registries."""
    found: dict[str, None] = {}
    for state in states:
        for obj in state.objects:
            if obj["kind"] == "DaemonSet":
                pod = obj["spec"]["template"]["spec"]
                for container in (*pod.get("initContainers", ()), *pod["containers"]):
                    found[container["image"]] = None
    return list(found)
