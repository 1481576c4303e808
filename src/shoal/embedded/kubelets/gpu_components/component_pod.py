"""Represents a component pod of a simulated node at one moment, as stages read it."""

from __future__ import annotations

import msgspec

from shoal.client.kubelet.pod_facts import Container, PodFacts, Role
from shoal.client.kubelet.pod_run import ContainerRun
from shoal.embedded.gpus.node_software import NodeSoftware
from shoal.embedded.kubelets.gpu_components.table import (
    DRIVER,
    DRIVER_CONTAINER,
    GpuComponent,
    component_of,
    needs_of_init,
)

_INIT_S = 1.0
"""The time of an init container that finds its layers at once."""


class ComponentPod(msgspec.Struct, frozen=True):
    component: GpuComponent
    software: NodeSoftware
    fault: str = ""
    """The fault that its node has for this component."""

    @property
    def name(self) -> str:
        return self.component.name

    def fault_of(self, role: Role | None) -> str:
        """Init containers have images and programs of their own, and no fault."""
        return self.fault if role == "main" else ""

    def missing(self, one: ContainerRun) -> tuple[str, ...]:
        """The layers without which the container does not go on."""
        needs = needs_of_init(self.component, one.name) if one.role == "init" else self.component.needs
        return tuple(layer for layer in needs if not self.software.has(layer))

    def layers_s(self, one: ContainerRun) -> float | None:
        """The time until an init container has found its layers; None while one is missing."""
        return None if self.missing(one) else _INIT_S

    def work_s(self, uid: str, one: ContainerRun, spec: Container) -> float | None:
        """The time from the start of the current state of health until the container works; None while a layer is
        missing.
        """
        if self.missing(one):
            return None
        has_worked = one.health == "failing"
        total_s = 0.0 if has_worked else self.component.work_s(uid, spec.image)
        return max(one.started_s + total_s - one.health_since_s, 0.0)

    def loss_s(self, one: ContainerRun) -> float | None:
        """0 if a container that works has lost a layer below it."""
        return 0.0 if self.missing(one) else None


def component_pod(facts: PodFacts, software: NodeSoftware, fault_of: dict[str, str]) -> ComponentPod | None:
    """None for a pod that is no component."""
    component = component_of(facts.metadata.labels)
    return None if component is None else ComponentPod(component, software, fault_of.get(component.name, ""))


def driver_image(facts: PodFacts) -> str:
    """The image from which a driver pod loads the driver."""
    images = {one.name: one.image for one in facts.spec.containers}
    return images.get(DRIVER_CONTAINER) or next(iter(images.values()), "")


def is_driver(component: GpuComponent) -> bool:
    return component.name == DRIVER
