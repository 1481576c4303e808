"""Facts for the dashboard: a node, a pod, an event in a line each; or read from objects with any text in them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.views.dashboard.facts import DashboardFacts, DashboardNode, DashboardPod, EventFacts, Slot
from shoal.views.dashboard.gpu_use import fleet_of, tile_of
from shoal.views.dashboard.reading import event_facts, node_facts, pod_facts

NOW_S = 1_767_225_642.0
"""42 seconds after the pods of `pod` were created."""


def node(name: str, gpus: int = 8, kind: str = "p5.48xlarge", **more: object) -> DashboardNode:
    return DashboardNode(name, kind, gpus, (), **more)  # type: ignore[arg-type]


def cut_node(name: str, gpus: int = 2, parts: int = 4) -> DashboardNode:
    """Every GPU in equal slices called `GPU/SLICE`."""
    slots = [Slot(f"{gpu}/{at}", gpu, at / parts, 1 / parts) for gpu in range(gpus) for at in range(parts)]
    return DashboardNode(name, "p4d.24xlarge", gpus, tuple(slots))


def pod(name: str, team: str = "vision", gpus: float = 1, node: str = "n-0", *devices: str) -> DashboardPod:
    phase = "Running" if node else "Pending"
    return DashboardPod(
        team, name, phase, node, gpus, devices, "" if node else "no GPU is free", "2026-01-01T00:00:00Z"
    )


def event(reason: str = "Scheduled", *, is_warning: bool = False) -> EventFacts:
    return EventFacts("2026-01-01T10:20:30Z", "pod/a", reason, "Successfully assigned it to a node", is_warning)


def read_node(name: str, kind: str, count: str = "8") -> DashboardNode:
    labels = {"node.kubernetes.io/instance-type": kind, "nvidia.com/gpu.count": count}
    return node_facts(msgspec.json.encode({"metadata": {"name": name, "labels": labels}}))


def read_pod(namespace: str, name: str, why: str, node: str = "", gpus: str = "1") -> DashboardPod:
    spec = {"nodeName": node, "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": gpus}}}]}
    status = {"phase": "Running" if node else "Pending", "message": why}
    return pod_facts(
        msgspec.json.encode({"metadata": {"namespace": namespace, "name": name}, "spec": spec, "status": status})
    )


def read_event(reason: str, about: str, message: str) -> EventFacts:
    return event_facts(
        msgspec.json.encode(
            {
                "metadata": {"name": "e", "creationTimestamp": about},
                "involvedObject": {"kind": about, "name": about},
                "reason": reason,
                "message": message,
            }
        )
    )


def scene(
    nodes: Sequence[DashboardNode],
    pods: Sequence[DashboardPod] = (),
    events: Sequence[EventFacts] = (),
    footer: str = "",
) -> DashboardFacts:
    held: dict[str, list[DashboardPod]] = {}
    for one in pods:
        if one.node:
            held.setdefault(one.node, []).append(one)
    waiting = [one for one in pods if not one.node]
    tiles = [tile_of(one, held.get(one.name, ())) for one in nodes]
    running = len(pods) - len(waiting)
    return DashboardFacts(
        "Shoal", "00:42", tiles, fleet_of(tiles), waiting, len(waiting), running, 3, 1, events, footer, now_s=NOW_S
    )
