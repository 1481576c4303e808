"""Represents everything that a planning of nodes depends on."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.api.pod import Pod
from shoal.api.workloads import DaemonSet
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.plan import PlanningSettings
from shoal.autoscale.nodes.planned_devices import NO_DEVICES, PlannedDevices
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.nodes.volumes import Volumes


class PlanningInput(msgspec.Struct, frozen=True):
    """Everything that a planning depends on."""

    pools: tuple[NodePool, ...]
    types: Mapping[str, tuple[InstanceType, ...]]
    """What each pool may choose from, by its name."""
    nodes: tuple[ExistingNode, ...] = ()
    pods: tuple[Pod, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    volumes: Volumes = Volumes()
    namespace_labels: Mapping[str, Mapping[str, str]] = {}
    gangs: Mapping[str, str] = {}
    """The gang of each pod that belongs to one, by the pod's namespace and name."""
    together: Mapping[str, str] = {}
    """The label of which all nodes of a gang must have one value, by gang."""
    forbidden: Mapping[str, str] = {}
    """Pods for which nothing is provisioned, and why: quota forbids them, or their gang is not complete."""
    devices: PlannedDevices = NO_DEVICES
    """Devices and resource claims (DRA)."""
    settings: PlanningSettings = PlanningSettings()


def pod_key(pod: Pod) -> str:
    """Namespace and name, as plans name pods."""
    return f"{pod.metadata.namespace or DEFAULT_NAMESPACE}/{pod.metadata.name}"
