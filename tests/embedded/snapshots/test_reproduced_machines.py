"""A machine that is made of a Node object has what the node had: labels, resources, GPUs, taints and cordons."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.kubelets.node_object import amounts, labels_of, node_of
from shoal.embedded.machines.fleet_spec import read_fleet
from shoal.embedded.machines.machine import Machine
from shoal.embedded.snapshots.machines import claim_drivers, reproduced_node

Obj = dict[str, Any]
FLEETS = (
    "p5.48xlarge",
    "g6.12xlarge[taint]",
    "dgx-a100-80[mig=all-1g.10gb]",
    "dgx-a100-80[mig=all-balanced]",
    "dgx-h100[mig=all-1g.10gb,strategy=single]",
    "g5.12xlarge[time-slicing=4]",
    "g5.12xlarge[time-slicing=4,rename]",
    "g5.12xlarge[mps=4]",
    "p4d.24xlarge[numa-policy=single-numa-node]",
    "cpu-8",
)


def as_node(machine: Machine) -> Obj:
    """The Node object of a simulated machine, with its status."""
    gpus = DeviceManager(machine)
    capacity, allocatable = amounts(machine, gpus)
    made = node_of(machine, gpus)
    conditions = [{"type": "Ready", "status": "True"}]
    made["status"] = {"capacity": capacity, "allocatable": allocatable, "conditions": conditions}
    return made


@pytest.mark.parametrize("fleet", FLEETS)
def test_the_machine_of_a_node_makes_the_same_node(fleet: str) -> None:
    (machine,) = read_fleet(fleet)
    found = reproduced_node(as_node(machine))
    gpus = DeviceManager(found.machine)
    assert labels_of(found.machine, gpus) == labels_of(machine, DeviceManager(machine))
    assert amounts(found.machine, gpus) == amounts(machine, DeviceManager(machine))
    assert found.machine.taints == machine.taints
    assert [(gpu.model, gpu.island, gpu.numa) for gpu in found.machine.gpus] == [
        (gpu.model, gpu.island, gpu.numa) for gpu in machine.gpus
    ]
    assert found.notes == ()


def gpu_slice(node_name: str, *, driver: str = "gpu.nvidia.com", **spec: Any) -> Obj:
    made = {
        "driver": driver,
        "nodeName": node_name,
        "pool": {"name": node_name},
        "devices": [{"name": "gpu-0"}],
        **spec,
    }
    return {"kind": "ResourceSlice", "metadata": {"name": f"{node_name}-{driver}"}, "spec": made}


def test_a_node_whose_gpus_a_driver_gives_to_claims_does_the_same() -> None:
    (machine,) = read_fleet("dgx-h100[dra]")
    made = as_node(machine)
    dynamic = gpu_slice(machine.name, sharedCounters=[{"name": "gpu-0", "counters": {"memory": {"value": "8"}}}])
    for slices in ([gpu_slice(machine.name)], [dynamic]):
        found = reproduced_node(made, claim_drivers([made, *slices]).get(machine.name))
        assert amounts(found.machine, DeviceManager(found.machine)) == amounts(machine, DeviceManager(machine))
        assert labels_of(found.machine, DeviceManager(found.machine)) == labels_of(machine, DeviceManager(machine))
        assert (found.machine.gives_by_claims, found.machine.has_dynamic_mig) == (True, slices == [dynamic])


def test_devices_of_other_drivers_and_nodes_change_nothing() -> None:
    slices = [gpu_slice("n", driver="nic.example.com"), gpu_slice("m")]
    assert claim_drivers(slices).keys() == {"m"}
    (machine,) = read_fleet("dgx-h100")
    assert not reproduced_node(as_node(machine), claim_drivers(slices).get("n")).machine.gives_by_claims


def node(**labels: str) -> Obj:
    (machine,) = read_fleet("p5.48xlarge")
    made = as_node(machine)
    made["metadata"]["labels"] |= {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}
    return made


def test_cordons_and_taints_of_users_are_kept_and_those_of_controllers_are_not() -> None:
    made = node()
    lifecycle = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    made["spec"] |= {
        "unschedulable": True,
        "taints": [{"key": "team", "value": "b", "effect": "NoSchedule"}, lifecycle],
    }
    found = reproduced_node(made)
    assert found.obj["spec"]["unschedulable"] is True
    assert found.obj["spec"]["taints"] == [{"key": "team", "value": "b", "effect": "NoSchedule"}]


def test_a_model_that_is_not_known_keeps_its_name_and_memory() -> None:
    made = node(nvidia_com__gpu_product="NVIDIA-X900", nvidia_com__gpu_memory="99000")
    found = reproduced_node(made)
    assert {(gpu.product, gpu.memory_mib, gpu.model) for gpu in found.machine.gpus} == {("NVIDIA-X900", 99000, "")}
    assert len(found.machine.gpus) == 8
    assert 'its GPU model "NVIDIA-X900" is not known' in found.notes[0]
    assert DeviceManager(found.machine).resources()["nvidia.com/gpu"].capacity == 8


def test_gpus_without_labels_are_those_of_the_machine_type() -> None:
    made = node()
    labels = made["metadata"]["labels"]
    made["metadata"]["labels"] = {key: value for key, value in labels.items() if not key.startswith("nvidia.com/")}
    assert {gpu.model for gpu in reproduced_node(made).machine.gpus} == {"H100-SXM5-80GB"}


def test_instances_that_are_counted_as_gpus_are_parts_of_gpus() -> None:
    (machine,) = read_fleet("dgx-h100[mig=all-1g.10gb,strategy=single]")
    made = as_node(machine)
    del made["metadata"]["labels"]["node.kubernetes.io/instance-type"]
    assert len(reproduced_node(made).machine.gpus) == 8


def test_what_a_simulated_node_cannot_be_is_noted() -> None:
    made = node()
    made["status"]["allocatable"]["nvidia.com/gpu"] = "7"
    made["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert reproduced_node(made).notes == (
        "1 unhealthy GPU: all are healthy here",
        "it is not ready: it is ready here",
    )
    made = node(nvidia_com__mig_config="of-our-own")
    made["status"]["capacity"]["nvidia.com/mig-1g.10gb"] = "7"
    assert "its MIG layout" in reproduced_node(made).notes[-1]


def test_gpus_have_the_ids_that_the_node_has_reported() -> None:
    made = node()
    gpus = [{"index": at, "uuid": f"GPU-real-{at}", "pci": f"{at}", "numa": at // 4, "island": 0} for at in range(8)]
    made["metadata"]["annotations"]["shoal.dev/topology"] = json.dumps({"gpus": gpus})
    found = reproduced_node(made).machine.gpus
    assert [(gpu.uuid, gpu.pci, gpu.numa) for gpu in found] == [(f"GPU-real-{at}", f"{at}", at // 4) for at in range(8)]
    assert DeviceManager(reproduced_node(made).machine).is_healthy("GPU-real-3")


@pytest.mark.parametrize("annotation", ["no JSON", "{}", '{"gpus":[{"index":0,"uuid":"GPU-x"}]}'])
def test_an_annotation_about_other_gpus_is_ignored(annotation: str) -> None:
    made = node()
    made["metadata"]["annotations"]["shoal.dev/topology"] = annotation
    assert len({gpu.uuid for gpu in reproduced_node(made).machine.gpus}) == 8
