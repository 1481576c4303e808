"""What the dashboard costs on a cluster of 1,000 nodes: `python -m bench.dashboard`.

Prints the computing time of reading all objects, and of a second in which pods change and frames are drawn, for each
view, each beside its bar.
Frames are drawn at most four times a second, and seldom enough to take 3 % of a core at most; what is measured
here is what they would take without that limit.
"""

from __future__ import annotations

import argparse
import io
import random
from collections.abc import Iterator, Sequence
from time import process_time

import msgspec
from rich.console import Console

from shoal.views.dashboard.cluster_state import ClusterState
from shoal.views.dashboard.colours import Colours
from shoal.views.dashboard.frame import draw_frame
from shoal.views.dashboard.reading import event_facts, node_facts, pod_facts
from shoal.views.dashboard.screen_state import ScreenState, View

_NODES, _PODS_PER_NODE, _WAITING = 1_000, 6, 2_000
_CHANGES_PER_S, _FRAMES_PER_S, _SECONDS = 50, 4, 10
_SIZES = ((80, 24), (200, 60))
_BAR_PERCENT, _READ_BAR_S = 5.0, 3.0
_NOW_S = 1_767_261_600.0


def main(arguments: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    began = process_time()
    cluster = ClusterState()
    for data in _nodes():
        cluster.put_node(node_facts(data))
    pods = list(_pods())
    for data in pods:
        cluster.put_pod(pod_facts(data))
    cluster.scene("", now_s=_NOW_S)
    _say(f"{_NODES:,} nodes and {len(pods):,} pods are read", f"{process_time() - began:.2f} s", f"{_READ_BAR_S:g} s")
    for size in _SIZES:
        for view in View:
            spent = _run(cluster, size, view)
            name = (
                f"{view.lower()} at {size[0]}x{size[1]}, {_FRAMES_PER_S} frames and {_CHANGES_PER_S} changes a second"
            )
            _say(name, f"{100 * spent / _SECONDS:.1f} % of a core", f"{_BAR_PERCENT:g} %")
    return 0


def _run(cluster: ClusterState, size: tuple[int, int], view: View) -> float:
    """The computing time of ten seconds."""
    draw, colours, state = random.Random(1), Colours(), ScreenState(view=view)
    console = Console(file=io.StringIO(), force_terminal=True, width=size[0], height=size[1], color_system="256")
    began = process_time()
    for frame in range(_SECONDS * _FRAMES_PER_S):
        for number in range(_CHANGES_PER_S // _FRAMES_PER_S):
            node, pod = draw.randrange(_NODES), draw.randrange(_PODS_PER_NODE)
            cluster.put_pod(
                pod_facts(_pod(f"p-{node}-{pod}", f"node-{node}", "Running" if number % 2 else "Succeeded"))
            )
            cluster.put_event(event_facts(_event(frame, number)))
        cluster_facts = cluster.scene("00:01", "", _NOW_S + frame / _FRAMES_PER_S)
        console.print(draw_frame(cluster_facts, colours, size, state).text)
    return process_time() - began


def _nodes() -> Iterator[bytes]:
    for number in range(_NODES):
        labels = {"node.kubernetes.io/instance-type": f"kind-{number % 4}", "nvidia.com/gpu.count": "8"}
        gpus = [{"index": index, "uuid": f"GPU-{number}-{index}"} for index in range(8)]
        annotations = {"shoal.dev/topology": msgspec.json.encode({"gpus": gpus}).decode()}
        status = {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"nvidia.com/gpu": "8"}}
        yield msgspec.json.encode(
            {"metadata": {"name": f"node-{number}", "labels": labels, "annotations": annotations}, "status": status}
        )


def _pods() -> Iterator[bytes]:
    for node in range(_NODES):
        for pod in range(_PODS_PER_NODE):
            yield _pod(f"p-{node}-{pod}", f"node-{node}", "Running")
    for number in range(_WAITING):
        yield _pod(f"w-{number}", "", "Pending")


def _pod(name: str, node: str, phase: str) -> bytes:
    metadata = {"namespace": f"team-{len(name) % 7}", "name": name, "creationTimestamp": "2026-01-01T09:00:00Z"}
    spec = {"nodeName": node, "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    refused = {"type": "PodScheduled", "status": "False", "message": "0/1000 nodes are available: 1000 too small."}
    return msgspec.json.encode(
        {"metadata": metadata, "spec": spec, "status": {"phase": phase, "conditions": [refused]}}
    )


def _event(frame: int, number: int) -> bytes:
    about = {"kind": "Pod", "namespace": "team-1", "name": f"p-{number}"}
    metadata = {"name": f"e-{frame}-{number}", "namespace": "team-1", "creationTimestamp": "2026-01-01T10:00:00Z"}
    return msgspec.json.encode({"metadata": metadata, "involvedObject": about, "reason": "Started", "message": "x"})


def _say(what: str, figure: str, bar: str) -> None:
    print(f"  {what:<72} {figure:>16}  (bar {bar})")


if __name__ == "__main__":
    main()
