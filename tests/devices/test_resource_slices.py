"""ResourceSlices of a node: names, attributes, capacities, taints and counters, within the limits of the API."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from build.claimable import NODE, cause, claimable
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.api.slices import Device, ResourceSlice, check_slice
from shoal.api.wire import dec_hook
from shoal.client.kind import RESOURCE_SLICES
from shoal.data.mig import Layout, layouts
from shoal.devices.claimable_devices import ClaimableInput, claimable_devices
from shoal.devices.claimable_gpus import PoolOfNode
from shoal.devices.mig_instances import places, possible_counts
from shoal.devices.resource_slices import (
    Published,
    counters_of_layout,
    counters_of_partition,
    partitions_of,
    slice_specs,
)
from shoal.units.errors import Where

CUT = "dgx-h100[mig=all-1g.10gb]"


def devices(given: ClaimableInput) -> tuple[Device, ...]:
    return tuple(one.described for one in claimable_devices(given))


def values(device: Device) -> dict[str, object]:
    return {name: attribute.value() for name, attribute in device.attributes.items()}


def taints(device: Device) -> list[tuple[str, str, str]]:
    return [(taint.key, taint.value, taint.effect) for taint in device.taints]


def test_a_gpu_is_described_as_nvidias_driver_does() -> None:
    given = claimable()
    gpu = msgspec.structs.replace(given.gpus[0], brand="NVIDIA")
    first = devices(msgspec.structs.replace(given, gpus=(gpu,), pcie_roots={gpu.uuid: "pci0000:48"}))[0]
    assert first.name == "gpu-0"
    assert values(first) == {
        "type": "gpu",
        "uuid": given.gpus[0].uuid,
        "productName": "NVIDIA H100 80GB HBM3",
        "brand": "NVIDIA",
        "architecture": "Hopper",
        "cudaComputeCapability": "9.0.0",
        "driverVersion": ".".join(str(int(part)) for part in given.versions.driver.split(".")),
        "cudaDriverVersion": f"{given.versions.cuda}.0",
        "resource.kubernetes.io/pciBusID": given.gpus[0].pci.lower()[4:],
        "resource.kubernetes.io/pcieRoot": "pci0000:48",
    }
    assert first.attributes["driverVersion"].version is not None
    assert str(first.capacity["memory"].value) == f"{given.gpus[0].memory_mib}Mi"


def test_versions_have_no_leading_zeros_and_odd_ones_are_left_out() -> None:
    given = claimable()
    versions = msgspec.structs.replace(given.versions, driver="580.095.05", cuda="unknown")
    found = values(devices(msgspec.structs.replace(given, versions=versions))[0])
    assert found["driverVersion"] == "580.95.5"
    assert "cudaDriverVersion" not in found


def test_a_gpu_in_mig_mode_is_replaced_by_its_instances() -> None:
    found = devices(claimable(CUT))
    assert len(found) == 56
    assert found[0].name == "gpu-0-mig-1g10gb-19-0"
    assert values(found[0]).items() >= {"type": "mig", "profile": "1g.10gb", "architecture": "Hopper"}.items()
    amounts = {name: str(capacity.value) for name, capacity in found[1].capacity.items()}
    assert amounts.items() >= {"memorySlice1": "1", "multiprocessors": "16", "copyEngines": "1"}.items()


@pytest.mark.parametrize("machine", ["dgx-h100", CUT, "dgx-a100-80[mig=all-balanced]"])
def test_the_exporter_finds_each_device_by_its_name(machine: str) -> None:
    given = claimable(machine)
    pool = PoolOfNode(NODE, given.gpus)
    for one in claimable_devices(given):
        found = pool.find(NODE, one.name)
        assert found is not None
        assert one.uuid == (found.uuid if found.mig is None else found.mig.uuid)


def test_an_unhealthy_gpu_is_tainted_and_others_are_not() -> None:
    faults = {
        1: (cause("xid-79"), cause("xid-13", is_unhealthy=False), cause("lost"), cause("hot", is_unhealthy=False))
    }
    found = devices(claimable(faults=faults))
    assert taints(found[0]) == []
    assert taints(found[1]) == [
        ("gpu.nvidia.com/xid", "79", "NoSchedule"),
        ("gpu.nvidia.com/gpu-lost", "", "NoSchedule"),
        ("gpu.nvidia.com/xid", "13", "None"),
    ]


def test_an_error_of_one_instance_taints_that_instance_only() -> None:
    given = claimable(CUT)
    number = given.gpus[0].instances[2].instance
    found = devices(claimable(CUT, {0: (cause(f"xid-94-instance-{number}", instance=number),)}))
    assert [one.name for one in found if one.taints] == ["gpu-0-mig-1g10gb-19-2"]


def test_more_faults_than_taints_are_allowed_keep_those_that_matter() -> None:
    faults = [*(cause(f"xid-{number}", is_unhealthy=False) for number in range(100, 120)), cause("xid-79")]
    found = taints(devices(claimable(faults={0: tuple(faults)}))[0])
    assert len(found) == 16
    assert found[0] == ("gpu.nvidia.com/xid", "79", "NoSchedule")


@pytest.mark.parametrize("layout", layouts(), ids=lambda one: one.name)
def test_the_counters_allow_exactly_the_layouts_that_a_gpu_can_have(layout: Layout) -> None:
    total = counters_of_layout(layout)
    parts = [
        (profile.name, {name: one.value.value() for name, one in counters_of_partition(profile, start, total).items()})
        for profile in layout.profiles
        for start in profile.starts
    ]
    legal = set(possible_counts(layout.name))
    found = set()

    def place(at: int, left: dict[str, int], chosen: list[str]) -> None:
        counts = tuple(sorted(Counter(chosen).items()))
        assert counts in legal
        found.add(counts)
        for index in range(at, len(parts)):
            name, taken = parts[index]
            if all(left[counter] >= amount for counter, amount in taken.items()):
                rest = {counter: amount - taken.get(counter, 0) for counter, amount in left.items()}
                place(index + 1, rest, [*chosen, name])

    place(0, {name: one.value.value() for name, one in total.items()}, [])
    assert found == {counts for counts in legal if places(layout, counts) is not None}


@pytest.mark.parametrize(
    ("content", "sizes"),
    [
        (Published(()), [0]),
        (Published(devices(claimable())), [8]),
        (Published(devices(claimable(CUT))), [56]),
        (Published(devices(claimable(CUT, {0: (cause("lost"),)}))), [56]),
        (partitions_of(claimable()), [0, 52, 52, 52, 52]),
    ],
    ids=["none", "gpus", "instances", "tainted", "partitions"],
)
@virtual
async def test_an_api_server_accepts_the_slices(tmp_path: Path, content: Published, sizes: list[int]) -> None:
    specs = slice_specs(NODE, content, 3)
    assert [len(spec.get("devices", ())) for spec in specs] == sizes
    assert {tuple(spec["pool"].values()) for spec in specs} == {(NODE, len(specs), 3)}
    async with small_cluster(tmp_path) as cluster:
        for spec in specs:
            await cluster.create(RESOURCE_SLICES, {"metadata": {"generateName": "n1-"}, "spec": spec})
        stored = await cluster.all(RESOURCE_SLICES)
    assert sum(len(one["spec"].get("devices", ())) for one in stored) == len(content.devices)


def test_no_slice_has_more_devices_than_the_api_allows() -> None:
    plain = [device for number in range(5) for device in devices(claimable(CUT))]
    assert [len(spec["devices"]) for spec in slice_specs(NODE, Published(tuple(plain)), 1)] == [126, 126, 28]


@pytest.mark.parametrize(
    "content", [Published(devices(claimable(CUT))), partitions_of(claimable())], ids=["cut", "parts"]
)
def test_the_scheduler_reads_the_slices(content: Published) -> None:
    pieces = [{"metadata": {"name": "n1"}, "spec": spec} for spec in slice_specs(NODE, content, 1)]
    read = [msgspec.convert(piece, ResourceSlice, dec_hook=dec_hook) for piece in pieces]
    for piece in read:
        check_slice(piece, Where())
    assert tuple(device for piece in read for device in piece.spec.devices) == content.devices
