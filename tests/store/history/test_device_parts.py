"""Which part of a GPU a pod holds that shares it: by fraction, by memory or by cores, wherever its device is named."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from shoal.client.item import item_of
from shoal.cost.records import FULL_SHARE, DeviceShare, Holder
from shoal.store.history.node_rows import NodeDeviceNames
from shoal.store.history.pod_rows import holding_of, read_pod

GIVEN = {"shoal.dev/devices": json.dumps({"main": {"nvidia.com/gpu": ["GPU-a"]}})}
REPORTED = [
    {
        "name": "main",
        "allocatedResourcesStatus": [{"name": "nvidia.com/gpu", "resources": [{"resourceID": "GPU-a"}]}],
    }
]
NAMES = NodeDeviceNames(("GPU-a",), {"GPU-a": DeviceShare("GPU-a")}, {}, "NVIDIA-A100-SXM4-80GB")


def _held(annotations: dict[str, str], limits: dict[str, str], statuses: list[Any]) -> float:
    meta = {"name": "p", "namespace": "lab", "uid": "u", "resourceVersion": "1", "annotations": annotations}
    container = {"name": "main", "image": "x", "resources": {"limits": limits}}
    pod = {"metadata": meta, "spec": {"nodeName": "n", "containers": [container]}}
    read = read_pod(item_of(msgspec.json.encode({**pod, "status": {"containerStatuses": statuses}})))
    holding = holding_of(read, Holder("p", "lab"), NAMES, {}, 1000)
    assert holding is not None
    (device,) = holding.devices
    assert device.device == "GPU-a"
    return device.share / FULL_SHARE


@pytest.mark.parametrize("source", ["the scheduler's annotation", "the kubelet's report", "any free device"])
@pytest.mark.parametrize(
    ("annotations", "limits", "share"),
    [
        ({"gpu-fraction": "0.5"}, {}, 0.5),
        ({"gpu-memory": "20480"}, {}, 0.25),
        ({}, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "20480"}, 0.25),
        ({}, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "20480", "nvidia.com/gpucores": "40"}, 0.4),
        ({}, {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "30"}, 0.3),
        # Without a limit of memory the pod takes all of it, and no other pod fits beside it.
        ({}, {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "40"}, 1.0),
        ({}, {"nvidia.com/gpu": "1"}, 1.0),
        ({"gpu-fraction": "wrong"}, {"nvidia.com/gpu": "1"}, 1.0),
    ],
)
def test_a_pod_holds_the_part_of_the_gpu_that_it_asks_for(
    source: str, annotations: dict[str, str], limits: dict[str, str], share: float
) -> None:
    given = GIVEN if source == "the scheduler's annotation" else {}
    statuses = REPORTED if source == "the kubelet's report" else []
    assert _held({**annotations, **given}, limits, statuses) == pytest.approx(share, abs=1e-3)
