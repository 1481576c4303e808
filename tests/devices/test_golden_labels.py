"""The labels of every machine type: the agent and the simulated node write the same ones, and they change only on
purpose. `build/golden_labels.py` says how the files are written anew."""

from __future__ import annotations

import pytest

from build.golden_labels import VARIANTS, agent_labels, agent_metadata, golden, without_machine
from build.gpu_pods import device_manager
from shoal.embedded.kubelets.node_object import node_of
from shoal.embedded.machines.machine_types import machine_names

GOLDEN = golden()
OF_GPUS = ("nvidia.com/", "gpu.nvidia.com/", "feature.node.kubernetes.io/pci-10de.")
OF_OTHERS = ("nvidia.com/gpu.deploy.", "nvidia.com/mig.config")
"""Labels of the GPU operator and of the MIG manager."""
ALL = (*machine_names(), *VARIANTS)


@pytest.mark.parametrize("spec", ALL)
def test_the_agent_writes_what_the_simulated_node_has(spec: str) -> None:
    manager = device_manager(spec)
    node = node_of(manager.machine, manager)["metadata"]
    simulated = {
        name: value
        for name, value in node["labels"].items()
        if name.startswith(OF_GPUS) and not name.startswith(OF_OTHERS)
    }
    found = agent_metadata(manager)
    # Discovery runs on nodes with GPUs of NVIDIA; where it is started without any, it says so.
    assert found.labels == (simulated if manager.machine.gpus else {"nvidia.com/vgpu.present": "false"})
    assert bool(simulated) == bool(manager.machine.gpus)
    assert found.left_out == ()
    assert {name: node["annotations"][name] for name in found.annotations} == found.annotations


@pytest.mark.parametrize("spec", sorted(GOLDEN))
def test_labels_are_those_of_the_file(spec: str) -> None:
    assert agent_labels(spec) == GOLDEN[spec]


def test_every_machine_type_has_the_labels_of_some_file() -> None:
    kept = {without_machine(labels) for labels in GOLDEN.values()}
    found = {spec: agent_labels(spec) for spec in ALL}
    assert [spec for spec, labels in found.items() if labels and without_machine(labels) not in kept] == []
    assert {*VARIANTS} <= {*GOLDEN}
