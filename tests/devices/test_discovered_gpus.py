"""What the driver of a machine reports is enough to know the machine: GPUs, islands, MIG instances, labels."""

from __future__ import annotations

import msgspec
import pytest

from build.gpu_pods import device_manager
from shoal.devices.discovered import layouts_of, slots_of
from shoal.devices.feature_labels import LabelInput, feature_labels
from shoal.devices.port import InstalledGpu, MigInstance, NvlinkPeer
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.simulated_driver import SimulatedDriver
from shoal.embedded.machines.machine_types import machine_names


def reported(manager: DeviceManager) -> tuple[InstalledGpu, ...]:
    return SimulatedDriver(manager, DcgmExporter(manager), lambda: 0.0).gpus().gpus


@pytest.mark.parametrize("name", machine_names())
def test_every_machine_of_the_catalogue_is_known_from_what_its_driver_reports(name: str) -> None:
    manager = device_manager(name)
    slots = manager.machine.gpus
    found = slots_of(reported(manager))
    # GPUs that are not connected are one island each, whatever the number.
    assert [msgspec.structs.replace(one, island=0) for one in found] == [
        msgspec.structs.replace(one, island=0) for one in slots
    ]
    assert layouts_of(reported(manager)) == manager.gpus


@pytest.mark.parametrize("spec", ["p5.48xlarge[mig=all-1g.10gb]", "dgx-a100-80[mig=all-balanced]", "dgx-h100"])
def test_islands_and_instances_of_cut_gpus_are_known(spec: str) -> None:
    manager = device_manager(spec)
    assert slots_of(reported(manager)) == manager.machine.gpus
    assert layouts_of(reported(manager)) == manager.gpus


@pytest.mark.parametrize("name", [*machine_names(), "p5.48xlarge[mig=all-1g.10gb]", "p4d.24xlarge[mig=all-balanced]"])
def test_labels_follow_from_what_a_driver_reports(name: str) -> None:
    manager = device_manager(name)
    driver = SimulatedDriver(manager, DcgmExporter(manager), lambda: 0.0)
    versions, gpus = driver.versions(), driver.gpus().gpus
    found = feature_labels(LabelInput(versions, gpus, manager.config, manager.machine.machine_type)) if gpus else {}
    written = {name: value for name, value in manager.labels().items() if name in found}
    assert found == written
    assert bool(found) == bool(gpus)


def gpu(index: int, *peers: int) -> InstalledGpu:
    links = tuple(NvlinkPeer(f"GPU-{peer}", 4) for peer in peers)
    return InstalledGpu(index, f"GPU-{index}", "NVIDIA A100-SXM4-80GB", f"00000000:0{index}:00.0", peers=links)


@pytest.mark.parametrize(
    ("gpus", "islands"),
    [
        ((gpu(0), gpu(1), gpu(2)), [0, 1, 2]),
        ((gpu(0, 2), gpu(1, 3), gpu(2, 0), gpu(3, 1)), [0, 1, 0, 1]),
        ((gpu(0, 1), gpu(1, 0, 2), gpu(2, 1)), [0, 0, 0]),
        ((gpu(0, 7), gpu(1)), [0, 1]),
    ],
    ids=["no links", "two pairs", "a chain is one island", "a peer that is not listed"],
)
def test_gpus_that_links_connect_are_one_island(gpus: tuple[InstalledGpu, ...], islands: list[int]) -> None:
    assert [slot.island for slot in slots_of(gpus)] == islands


def test_a_gpu_of_an_unknown_model_has_its_product_and_its_instances() -> None:
    instance = MigInstance("MIG-1", "2g.99gb", 3, 4, 2, 99_000)
    unknown = InstalledGpu(0, "GPU-0", "NVIDIA X900 (test)", "00000000:01:00.0", is_mig=True, instances=(instance,))
    assert (slots_of([unknown])[0].model, slots_of([unknown])[0].product) == ("", "NVIDIA-X900-test")
    cut = layouts_of([unknown])[0].cuts[0]
    assert (cut.profile.resource, cut.profile.compute, cut.start, cut.memory_mib) == (
        "nvidia.com/mig-2g.99gb",
        2,
        4,
        99_000,
    )


def hidden(number: int, profile: str, compute: int = 0) -> MigInstance:
    """As a driver reports it to a process without privileges."""
    return MigInstance(f"MIG-{number}-{compute}", profile, number, None, None, 9856, compute_instance=compute)


def test_instances_without_a_position_have_places_that_fit() -> None:
    """An agent without privileges serves the instances of its node too."""
    profiles = {7: "1g.10gb", 1: "3g.40gb", 5: "2g.20gb", 9: "1g.10gb"}
    instances = tuple(hidden(number, name) for number, name in profiles.items())
    found = InstalledGpu(0, "GPU-0", "NVIDIA H100 80GB HBM3", "00000000:01:00.0", is_mig=True, instances=instances)
    (layout,) = layouts_of([found])
    assert {cut.uuid: cut.profile.name for cut in layout.cuts} == {one.uuid: one.profile for one in instances}
    assert all(cut.start in cut.profile.starts for cut in layout.cuts)
    taken = [slice_ for cut in layout.cuts for slice_ in range(cut.start, cut.start + cut.profile.width)]
    assert len(taken) == len(set(taken))
    assert layouts_of([found]) == (layout,)


@pytest.mark.parametrize(
    ("name", "instances", "starts"),
    [
        ("NVIDIA H100 80GB HBM3", (hidden(1, "1c.3g.40gb", 0), hidden(1, "1c.3g.40gb", 1)), [4, 4]),
        ("NVIDIA X900", (hidden(2, "2g.99gb"), hidden(1, "1g.50gb")), [0, 1]),
        ("NVIDIA X900", (hidden(1, "odd"), hidden(2, "")), [0, 1]),
    ],
    ids=["parts of one instance", "an unknown model", "unknown profiles"],
)
def test_odd_instances_without_a_position_are_listed_too(
    name: str, instances: tuple[MigInstance, ...], starts: list[int]
) -> None:
    found = InstalledGpu(0, "GPU-0", name, "00000000:01:00.0", is_mig=True, instances=instances)
    (layout,) = layouts_of([found])
    assert [cut.start for cut in layout.cuts] == starts
    assert {cut.uuid for cut in layout.cuts} == {one.uuid for one in instances}
