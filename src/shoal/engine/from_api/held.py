"""Reads the devices that running pods use, as far as the pods record them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.engine.device_notation import UNKNOWN_IDS, HeldDevices, NodeIds, node_ids, positions_of_pod
from shoal.engine.devices.kind import DevicePositions
from shoal.units.errors import Where


def ids_of_nodes(nodes: Iterable[Node]) -> dict[str, NodeIds]:
    """What nodes call their devices, by node; those that do not say are left out."""
    found = {node.metadata.name: node_ids(node.metadata.labels, node.metadata.annotations) for node in nodes}
    return {name: ids for name, ids in found.items() if ids is not UNKNOWN_IDS}


def positions_of_pods(pods: Iterable[Pod], ids: Mapping[str, NodeIds] = {}) -> dict[str, DevicePositions]:
    """By pod; pods on which nothing is written are left out. Bind these first: the others take what is left.

    `ids` are what their nodes call their devices.
    """
    running = [pod for pod in pods if pod.spec.node_name]
    held = HeldDevices()
    reported = {}
    for pod in running:
        known = ids.get(pod.spec.node_name, UNKNOWN_IDS)
        positions = positions_of_pod(pod.metadata.annotations, Where(obj=f"Pod {pod.metadata.key}"), known)
        if positions:
            reported[pod.metadata.key] = positions
            held.reserve(pod.spec.node_name, positions)
    for pod in running:
        key, meta, node = pod.metadata.key, pod.metadata, pod.spec.node_name
        own = ids.get(node, UNKNOWN_IDS)
        if key not in reported and (named := held.positions(node, meta.annotations, meta.labels, own)):
            reported[key] = named
    return reported
