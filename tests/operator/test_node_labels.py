"""The operator labels the nodes with GPUs, and overwrites no value."""

from __future__ import annotations

from typing import Any

import pytest

from build.operator_objects import PCI
from shoal.operator.components.facts import OperatorNode
from shoal.operator.components.node_labels import label_changes, removed_labels
from shoal.operator.policy.reading import read_cluster_policy

D = "nvidia.com/gpu.deploy."
OPERANDS = (
    *("container-toolkit", "dcgm", "dcgm-exporter", "device-plugin", "driver", "gpu-feature-discovery"),
    *("node-status-exporter", "operator-validator"),
)
ALL: dict[str, Any] = {"nvidia.com/gpu.present": "true", **{D + one: "true" for one in OPERANDS}}
CAPABLE = {"nvidia.com/mig.capable": "true"}
MIG: dict[str, Any] = {"nvidia.com/mig.config": "all-disabled", D + "mig-manager": "true"}
SANDBOX = {"sandboxWorkloads": {"enabled": True, "defaultWorkload": "vm-passthrough"}}
WORKLOAD = "nvidia.com/gpu.workload.config"
KERNEL = "feature.node.kubernetes.io/kernel-version.full"
Labels = dict[str, str]
CASES: dict[str, tuple[Labels, dict[str, Any], dict[str, str | None]]] = {
    "a node without GPUs is left alone": ({"a": "b"}, {}, {}),
    "a node that lost its GPUs loses the labels": (
        {"nvidia.com/gpu.present": "true", D + "driver": "true"},
        {},
        {"nvidia.com/gpu.present": None, D + "driver": None},
    ),
    "a node with GPUs gets all labels": ({PCI: "true"}, {}, ALL),
    "a display controller of NVIDIA counts": ({"feature.node.kubernetes.io/pci-0300_10de.present": "true"}, {}, ALL),
    "labels that are there are not written again": ({PCI: "true", **ALL}, {}, {}),
    "the false of a user stays": ({PCI: "true", **ALL, D + "dcgm-exporter": "false"}, {}, {}),
    "a preinstalled driver stays": ({PCI: "true", **ALL, D + "driver": "pre-installed"}, {}, {}),
    "a pause of the MIG manager stays": ({PCI: "true", **ALL, D + "device-plugin": "paused-for-mig-change"}, {}, {}),
    "an empty value is replaced": ({PCI: "true", **ALL, D + "driver": ""}, {}, {D + "driver": "true"}),
    "operands=false removes all components": (
        {PCI: "true", **ALL, D + "operands": "false"},
        {},
        {D + one: None for one in OPERANDS},
    ),
    "MIG capable GPUs get the manager and the default layout": ({PCI: "true", **ALL, **CAPABLE}, {}, MIG),
    "a layout that is chosen stays": (
        {PCI: "true", **ALL, **CAPABLE, "nvidia.com/mig.config": "all-1g.10gb"},
        {},
        {D + "mig-manager": "true"},
    ),
    "another default layout is not written as a label": (
        {PCI: "true", **ALL, **CAPABLE},
        {"migManager": {"config": {"default": "all-balanced"}}},
        {D + "mig-manager": "true"},
    ),
    "without a MIG manager no layout is written": (
        {PCI: "true", **ALL, **CAPABLE},
        {"migManager": {"enabled": False}},
        {D + "mig-manager": "true"},
    ),
    "a workload config has no effect without sandbox workloads": ({PCI: "true", WORKLOAD: "vm-vgpu"}, {}, ALL),
    "precompiled drivers need the kernel": (
        {PCI: "true", **ALL},
        {"driver": {"usePrecompiled": True}},
        {KERNEL: "6.8"},
    ),
}


def _node(labels: Labels) -> OperatorNode:
    return OperatorNode("n", labels, kernel="6.8")


@pytest.mark.parametrize("case", CASES)
def test_labels(case: str) -> None:
    labels, spec, expected = CASES[case]
    found = label_changes(_node(labels), read_cluster_policy(spec).spec)
    assert (found.labels, found.warning) == (expected, "")


def test_the_default_workload_of_sandboxes_applies_to_nodes_without_a_label() -> None:
    found = label_changes(_node({PCI: "true"}), read_cluster_policy(SANDBOX).spec)
    assert found.labels[D + "vfio-manager"] == "true"
    assert D + "device-plugin" not in found.labels


def test_a_node_for_virtual_gpus_loses_the_labels_of_containers() -> None:
    found = label_changes(_node({PCI: "true", **ALL, WORKLOAD: "vm-vgpu"}), read_cluster_policy(SANDBOX).spec)
    assert found.labels[D + "vgpu-manager"] == "true"
    assert found.labels[D + "device-plugin"] is None


def test_an_unknown_workload_config_is_named_and_the_default_applies() -> None:
    found = label_changes(_node({PCI: "true", WORKLOAD: "vm"}), read_cluster_policy(SANDBOX).spec)
    assert found.labels[D + "vfio-manager"] == "true"
    assert found.warning == (
        f"label {WORKLOAD}=vm: unknown value; vm-passthrough applies; use one of container, vm-passthrough, vm-vgpu"
    )


def test_all_labels_that_place_components_can_be_removed() -> None:
    assert removed_labels(_node({**ALL, PCI: "true"})) == dict.fromkeys(sorted(ALL))
