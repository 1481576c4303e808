"""What GPU feature discovery says of a node, and what the engine then reads of it."""

from __future__ import annotations

import msgspec
import pytest

from build.gpu_pods import device_manager
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.engine.device_notation.node_devices import layout_of_node
from shoal.units.errors import Where


def labels_of(node: DeviceManager) -> dict[str, str]:
    return {name: value for name, value in node.labels().items() if value is not None}


def words_of(node: DeviceManager) -> dict[str, str]:
    return {name: value for name, value in node.annotations().items() if value is not None}


@pytest.mark.parametrize(
    ("machine", "label", "value"),
    [
        ("p5.48xlarge", "gpu.product", "NVIDIA-H100-80GB-HBM3"),
        ("p5.48xlarge", "gpu.count", "8"),
        ("p5.48xlarge", "gpu.memory", "81559"),
        ("p5.48xlarge", "gpu.family", "hopper"),
        ("p5.48xlarge", "gpu.compute.major", "9"),
        ("p5.48xlarge", "gpu.replicas", "1"),
        ("p5.48xlarge", "gpu.sharing-strategy", "none"),
        ("p5.48xlarge", "mig.capable", "true"),
        ("p5.48xlarge", "gpu.present", "true"),
        ("p5.48xlarge", "gpu.deploy.mig-manager", "true"),
        ("g5.12xlarge", "mig.capable", "false"),
        ("g6.xlarge", "gpu.family", "ada-lovelace"),
        ("g4dn.xlarge", "gpu.family", "turing"),
        ("g4dn.xlarge", "gpu.product", "Tesla-T4"),
        ("p3.2xlarge", "gpu.family", "volta"),
        ("workstation-rtx5090", "gpu.family", "blackwell"),
        ("workstation-rtx5090", "gpu.mode", "graphics"),
        ("g5.12xlarge[time-slicing=4]", "gpu.product", "NVIDIA-A10G-SHARED"),
        ("g5.12xlarge[time-slicing=4]", "gpu.replicas", "4"),
        ("g5.12xlarge[time-slicing=4]", "gpu.count", "4"),
        ("g5.12xlarge[time-slicing=4,rename]", "gpu.product", "NVIDIA-A10G"),
        ("g5.12xlarge[mps=4]", "mps.capable", "true"),
        ("g5.12xlarge[mps=4]", "gpu.sharing-strategy", "mps"),
        ("dgx-a100-40[mig=all-1g.5gb]", "mig.strategy", "mixed"),
        ("dgx-a100-40[mig=all-1g.5gb]", "mig-1g.5gb.count", "56"),
        ("dgx-a100-40[mig=all-1g.5gb]", "mig-1g.5gb.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"),
        ("dgx-a100-40[mig=all-1g.5gb]", "mig-1g.5gb.memory", "4864"),
        ("dgx-a100-40[mig=all-1g.5gb]", "mig-1g.5gb.multiprocessors", "14"),
        ("dgx-a100-40[mig=all-1g.5gb]", "mig-1g.5gb.slices.gi", "1"),
        ("dgx-a100-40[mig=all-1g.5gb]", "gpu.replicas", "0"),
        ("dgx-a100-40[mig=all-1g.5gb]", "mig.config", "all-1g.5gb"),
        ("dgx-a100-40[mig=all-1g.5gb]", "mig.config.state", "success"),
        ("dgx-a100-40[mig=all-1g.5gb,strategy=single]", "gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"),
        ("dgx-a100-40[mig=all-1g.5gb,strategy=single]", "gpu.count", "56"),
        ("dgx-a100-40[mig=all-1g.5gb,strategy=single]", "gpu.memory", "4864"),
        ("dgx-a100-40[mig=all-1g.5gb,strategy=single]", "gpu.slices.ci", "1"),
    ],
)
def test_feature_discovery_says(machine: str, label: str, value: str) -> None:
    assert labels_of(device_manager(machine))[f"nvidia.com/{label}"] == value


def test_a_machine_without_gpus_has_no_labels_of_them() -> None:
    node = device_manager("cpu-64")
    assert (node.labels(), node.annotations(), node.resources()) == ({}, {}, {})


def test_labels_that_are_true_no_more_are_taken_away() -> None:
    node = device_manager("dgx-a100-40[mig=all-1g.5gb]")
    node.labels()
    node.configure({"nvidia.com/mig.config": "all-disabled"}, {})
    after = node.labels()
    assert after["nvidia.com/mig-1g.5gb.count"] is None
    assert after["nvidia.com/mig.config"] == "all-disabled"


def test_labels_that_another_process_left_are_taken_away_too() -> None:
    node = device_manager("dgx-a100-40")
    node.configure({"nvidia.com/mig-3g.20gb.count": "2", "nvidia.com/gpu.present": "true", "team": "a"}, {})
    found = node.labels()
    assert {name for name, value in found.items() if value is None} == {"nvidia.com/mig-3g.20gb.count"}


@pytest.mark.parametrize(
    ("machine", "gpus", "islands", "numa"),
    [
        ("p5.48xlarge", 8, (0,) * 8, (0, 0, 0, 0, 1, 1, 1, 1)),
        ("h100-nvl-box-4", 4, (0, 0, 1, 1), (0, 0, 1, 1)),
        ("g5.12xlarge[time-slicing=4]", 4, (0, 1, 2, 3), (0, 0, 0, 0)),
        ("dgx-a100-40[mig=all-1g.5gb,strategy=none,time-slicing=4]", 8, (0,) * 8, (0, 0, 0, 0, 1, 1, 1, 1)),
        ("dgx-a100-40[mig=all-1g.5gb,strategy=none,time-slicing=4,rename]", 8, (0,) * 8, (0, 0, 0, 0, 1, 1, 1, 1)),
        ("dgx-a100-40[mig=all-1g.5gb,strategy=none]", 8, (0,) * 8, (0, 0, 0, 0, 1, 1, 1, 1)),
    ],
)
def test_the_engine_reads_the_devices_as_they_are(
    machine: str, gpus: int, islands: tuple[int, ...], numa: tuple[int, ...]
) -> None:
    node = device_manager(machine)
    amounts = {name: one.allocatable for name, one in node.resources().items()}
    found = layout_of_node(labels_of(node), words_of(node), amounts, Where())
    assert (found.gpus, found.layout.islands, found.layout.numa) == (gpus, islands, numa)


@pytest.mark.parametrize(
    "machine",
    [
        "dgx-a100-40[mig=all-balanced]",
        "dgx-a100-40[mig=all-1g.5gb,strategy=single]",
        "g5.12xlarge[mps=3,rename]",
        "g5.12xlarge[mps=3,many-per-request]",
        "gb200-nvl72-tray",
        "cpu-8",
    ],
)
def test_the_engine_understands_every_way_of_sharing(machine: str) -> None:
    node = device_manager(machine)
    amounts = {name: one.allocatable for name, one in node.resources().items()}
    found = layout_of_node(labels_of(node), words_of(node), amounts, Where())
    assert found.layout.replicas == (3 if "mps" in machine else 1)
    if "mps" in machine:
        assert found.layout.one_per_request == ("many" not in machine)


def test_the_topology_annotation_names_every_device() -> None:
    node = device_manager("dgx-a100-40[mig=all-balanced]")
    told = msgspec.json.decode(words_of(node)["shoal.dev/topology"])
    assert [gpu["uuid"] for gpu in told["gpus"]] == [slot.uuid for slot in node.machine.gpus]
    assert [cut["start"] for cut in told["gpus"][0]["mig"]] == sorted(cut.start for cut in node.gpus[0].cuts)
