"""What agents and schedulers of 0.2 write to each other, which later versions must write and read as well.

During an upgrade, agents of one minor version work with a scheduler of the next. They communicate through annotations
and labels of Nodes and through one annotation of pods. The texts below are those of version 0.2 and are not changed: a
later version may add fields, and reads texts without them.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from build.gpu_pods import container, device_manager, pod_of
from shoal.agent.features.label_source import LabelSource, SourceSettings
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.wire import dec_hook
from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.chosen_devices import Choice
from shoal.devices.waiting_requests import annotation_of
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.simulated_driver import SimulatedDriver
from shoal.engine.device_demand import COMPUTE, DeviceGrant
from shoal.engine.device_notation import node_ids, positions_of_pod
from shoal.engine.from_api import ask_of_pod, node_facts_of
from shoal.store.watched.device_ids import chosen_ids
from shoal.units.errors import Where

Obj = dict[str, Any]
GPU = "nvidia.com/gpu"
FIRST_GPU = {"index": 0, "uuid": "GPU-a", "pci": "00000000:10:00.0", "numa": 0, "island": 0, "memoryMiB": 81920}
SECOND_GPU = {**FIRST_GPU, "index": 1, "uuid": "GPU-b", "pci": "00000000:2C:00.0", "numa": 1}
NODE_WORDS = {
    "shoal.dev/topology": json.dumps({"gpus": [FIRST_GPU, SECOND_GPU]}),
    "shoal.dev/gpu-islands": "0-1",
    "shoal.dev/gpu-numa": "0,1",
}
NODE_LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
    "nvidia.com/gpu.count": "2",
    "nvidia.com/gpu.memory": "81920",
}
POD_WORDS = '{"main":{"nvidia.com/gpu":["GPU-a","GPU-b"]}}'


def _with(words: str, **more: Any) -> str:
    return json.dumps({**json.loads(words), **more})


def _node(annotations: dict[str, str]) -> Node:
    amounts = {"cpu": "8", "memory": "64Gi", "pods": "110", GPU: "2"}
    meta = {"name": "n", "labels": NODE_LABELS, "annotations": annotations}
    return msgspec.convert(
        {"metadata": meta, "status": {"allocatable": amounts, "capacity": amounts}}, Node, dec_hook=dec_hook
    )


WITH_MORE = {
    **NODE_WORDS,
    "shoal.dev/topology": _with(
        NODE_WORDS["shoal.dev/topology"],
        gpus=[{**FIRST_GPU, "serial": 7}, {**SECOND_GPU, "serial": 8}],
        made={"by": "0.3"},
    ),
    "shoal.dev/of-a-later-version": "x",
}


@pytest.mark.parametrize("words", [NODE_WORDS, WITH_MORE], ids=["of 0.2", "with fields of a later agent"])
def test_the_scheduler_reads_the_devices_of_a_node_from_its_agent(words: dict[str, str]) -> None:
    node = _node(words)
    assert node_ids(node.metadata.labels, node.metadata.annotations).numbers == ("GPU-a", "GPU-b")
    facts = node_facts_of(node)
    assert facts.layout == node_facts_of(_node(NODE_WORDS)).layout
    assert facts.layout != node_facts_of(_node({})).layout


def test_without_annotations_that_an_older_agent_does_not_write_devices_are_counted() -> None:
    assert node_ids({}, {}).numbers == ()
    only_ids = {"shoal.dev/topology": json.dumps({"gpus": [{"uuid": "GPU-a"}, {"uuid": "GPU-b"}]})}
    assert node_ids({}, only_ids).numbers == ("GPU-a", "GPU-b")


def test_the_agent_writes_all_that_an_older_scheduler_reads() -> None:
    manager = device_manager("dgx-a100-80")
    driver = SimulatedDriver(manager, DcgmExporter(manager), lambda: 0.0)
    found = LabelSource(lambda: driver, SourceSettings(manager.config), manager.machine.machine_type).read()
    assert set(NODE_WORDS) <= set(found.annotations)
    assert set(NODE_LABELS) <= set(found.labels)
    row = json.loads(found.annotations["shoal.dev/topology"])["gpus"][0]
    assert {(name, type(value)) for name, value in FIRST_GPU.items()} <= {
        (name, type(value)) for name, value in row.items()
    }
    assert (found.annotations["shoal.dev/gpu-islands"], found.annotations["shoal.dev/gpu-numa"]) == ("0-7", "0-3,4-7")


def test_the_scheduler_chooses_devices_in_the_words_that_an_older_agent_reads() -> None:
    pod = msgspec.convert(pod_of("p", [container("main", 2)]), Pod, dec_hook=dec_hook)
    grant = DeviceGrant(((0, COMPUTE, 1000), (1, COMPUTE, 1000)))
    ids = node_ids({}, NODE_WORDS)
    assert chosen_ids(pod.spec, ask_of_pod(pod).devices, grant, ids, frozenset()) == json.loads(POD_WORDS)


@pytest.mark.parametrize("words", [POD_WORDS, "0,1"], ids=["by id", "by number"])
def test_the_agent_gives_the_devices_that_an_older_scheduler_chose(words: str) -> None:
    free = [PhysicalDevice(one, GPU, one, at, 0, 0, 81920) for at, one in enumerate(("GPU-a", "GPU-b", "GPU-c"))]
    found = Choice(pod_of("p", [container("main", 2)], annotations={"devices": words})).wanted("main", GPU, 2, free)
    assert found == free[:2]


def test_the_scheduler_counts_the_devices_that_an_older_agent_reports() -> None:
    assert annotation_of({"main": {GPU: ("GPU-a", "GPU-b")}}) == POD_WORDS
    assert positions_of_pod({"shoal.dev/devices": POD_WORDS}, Where(), node_ids({}, NODE_WORDS)) == ((0, 0), (1, 0))
