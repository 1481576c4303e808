"""The devices that running pods hold, as far as it is written on them."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.pod import Pod
from shoal.engine.devices.kind import Spots
from shoal.engine.spelling import HeldDevices, spots_of_pod
from shoal.units.errors import Where


def spots_of_pods(pods: Iterable[Pod]) -> dict[str, Spots]:
    """By pod; pods on which nothing is written are left out. Bind these first: the others take what is left."""
    running = [pod for pod in pods if pod.spec.node_name]
    held = HeldDevices()
    told = {}
    for pod in running:
        spots = spots_of_pod(pod.metadata.annotations, Where(obj=f"Pod {pod.metadata.key}"))
        if spots:
            told[pod.metadata.key] = spots
            held.reserve(pod.spec.node_name, spots)
    for pod in running:
        key, meta = pod.metadata.key, pod.metadata
        if key not in told and (named := held.spots(pod.spec.node_name, meta.annotations, meta.labels)):
            told[key] = named
    return told
