"""The objects that a ClusterPolicy asks for, found by kind and name."""

from __future__ import annotations

from typing import Any

from shoal.operator.components.build import Building
from shoal.operator.components.desired import DesiredState, desired_states
from shoal.operator.components.facts import FleetFacts, OperatorNode, OperatorSettings, fleet_facts
from shoal.operator.policy.reading import read_cluster_policy

Obj = dict[str, Any]
PCI = "feature.node.kubernetes.io/pci-10de.present"
SETTINGS = OperatorSettings(namespace="gpu-operator", image="registry.example/shoal:1.0")
KEYS = {"repos": ("nvidia.list",), "certs": ("ca.crt",), "modules": ("nvidia.conf", "nvidia-uvm.conf")}


def gpu_node(name: str = "gpu-0", **more: Any) -> OperatorNode:
    fields = {
        "labels": {PCI: "true"},
        "os_image": "Ubuntu 22.04.4 LTS",
        "kernel": "5.15.0-105-generic",
        "runtime": "containerd://1.7.27",
    }
    return OperatorNode(name, **(fields | more))


FACTS = fleet_facts([gpu_node()], KEYS, has_service_monitors=True)


def states(spec: Obj, facts: FleetFacts = FACTS, settings: OperatorSettings = SETTINGS) -> list[DesiredState]:
    return desired_states(Building(read_cluster_policy(spec).spec, facts, settings))


class Built:
    """All objects of a policy."""

    def __init__(self, spec: Obj, facts: FleetFacts = FACTS, settings: OperatorSettings = SETTINGS) -> None:
        self.states = states(spec, facts, settings)
        self.objects = {(one["kind"], one["metadata"]["name"]): one for state in self.states for one in state.objects}

    @property
    def daemon_sets(self) -> list[str]:
        return [name for kind, name in self.objects if kind == "DaemonSet"]

    def get(self, kind: str, name: str) -> Obj:
        return self.objects[kind, name]

    def pod(self, name: str) -> Obj:
        spec: Obj = self.get("DaemonSet", name)["spec"]["template"]["spec"]
        return spec

    def container(self, name: str, container: str = "") -> Obj:
        """The first container of a DaemonSet, or the one of that name, init containers included."""
        pod = self.pod(name)
        if not container:
            found: Obj = pod["containers"][0]
            return found
        return next(one for one in (*pod["containers"], *pod.get("initContainers", ())) if one["name"] == container)

    def env(self, name: str, container: str = "") -> dict[str, str]:
        return {one["name"]: one.get("value", "") for one in self.container(name, container).get("env", ())}
