"""What every driver of GPUs must do, checked on the same node with two GPUs for each: see `GpuDriverContract`."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import msgspec
import pytest

from shoal.devices.port import GpuDriver, GpuReadings, InstalledGpu, LostGpu, Profiling, UnknownGpuError

UUID = re.compile(r"(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PCI = re.compile(r"[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-9]")


class GpuDriverContract:
    """Subclasses have a fixture `driver`. These tests only read, so a real GPU passes them too."""

    def test_versions_are_numbers_with_dots(self, driver: GpuDriver) -> None:
        versions = driver.versions()
        assert re.fullmatch(r"[0-9]+\.[0-9]+(\.[0-9]+)?", versions.driver)
        assert versions.cuda is not None
        assert re.fullmatch(r"[0-9]+\.[0-9]", versions.cuda)

    def test_there_are_gpus_in_the_order_of_their_indexes(self, driver: GpuDriver) -> None:
        indexes = [gpu.index for gpu in driver.gpus().gpus]
        assert indexes
        assert indexes == sorted(set(indexes))

    def test_ids_are_unique_and_have_the_form_of_the_driver(self, driver: GpuDriver) -> None:
        gpus = driver.gpus().gpus
        ids = [*(gpu.uuid for gpu in gpus), *(one.uuid for gpu in gpus for one in gpu.instances)]
        assert len(ids) == len(set(ids))
        assert all(UUID.fullmatch(one) for one in ids)
        assert all(PCI.fullmatch(gpu.pci) for gpu in gpus)

    def test_a_gpu_has_a_name_memory_and_a_compute_capability(self, driver: GpuDriver) -> None:
        for gpu in driver.gpus().gpus:
            assert gpu.name
            assert gpu.memory_mib is not None
            assert gpu.memory_mib > 1024
            assert re.fullmatch(r"[0-9]+\.[0-9]", gpu.compute_capability or "")

    def test_two_lists_are_equal_when_nothing_has_changed(self, driver: GpuDriver) -> None:
        assert driver.gpus() == driver.gpus()

    def test_only_gpus_in_mig_mode_have_instances_which_do_not_overlap(self, driver: GpuDriver) -> None:
        for gpu in driver.gpus().gpus:
            assert gpu.is_mig or not gpu.instances
            places = sorted((one.start, one.width) for one in gpu.instances if one.start is not None and one.width)
            assert all(start + width <= following for (start, width), (following, _) in pairwise(places))
            assert all(re.match(r"[0-9]g\.[0-9]+gb|[0-9]c\.", one.profile) for one in gpu.instances)

    def test_device_nodes_of_gpus_have_different_numbers(self, driver: GpuDriver) -> None:
        minors = [gpu.minor for gpu in driver.gpus().gpus]
        assert all(minor is not None and minor >= 0 for minor in minors)
        assert len(minors) == len(set(minors))

    def test_connections_go_both_ways_with_the_same_number_of_links(self, driver: GpuDriver) -> None:
        links = {(gpu.uuid, peer.uuid): peer.links for gpu in driver.gpus().gpus for peer in gpu.peers}
        assert all(one != other and count > 0 for (one, other), count in links.items())
        assert all(links.get((other, one)) == count for (one, other), count in links.items())

    def test_every_two_gpus_have_the_same_pcie_relation_both_ways(self, driver: GpuDriver) -> None:
        gpus = driver.gpus().gpus
        relations = {(gpu.uuid, peer.uuid): peer.relation for gpu in gpus for peer in gpu.pcie_peers}
        pairs = {(one.uuid, other.uuid) for one in gpus for other in gpus if one is not other}
        assert relations.keys() == pairs
        assert all(relations[other, one] == relation for (one, other), relation in relations.items())

    def test_the_status_of_nvlink_is_that_of_each_other_gpu(self, driver: GpuDriver) -> None:
        gpus = driver.gpus().gpus
        for gpu in gpus:
            others = [other.index for other in gpus if other is not gpu]
            assert [one.index for one in gpu.nvlink_statuses] in ([], others)
            connected = {peer.uuid for peer in gpu.peers}
            for other, one in zip((each for each in gpus if each is not gpu), gpu.nvlink_statuses, strict=False):
                assert one.status == "OK" or other.uuid not in connected

    def test_instances_have_slices_and_multiprocessors(self, driver: GpuDriver) -> None:
        for one in (instance for gpu in driver.gpus().gpus for instance in gpu.instances):
            assert one.attributes is not None
            assert 0 < one.attributes.compute_slices <= one.attributes.gpu_slices <= 7
            assert one.attributes.multiprocessors > 0

    def test_a_pci_class_is_that_of_a_display_controller_and_a_fabric_has_a_cluster(self, driver: GpuDriver) -> None:
        for gpu in driver.gpus().gpus:
            assert gpu.pci_class is None or gpu.pci_class >> 16 == 3
            assert gpu.fabric is None or (gpu.fabric.cluster and gpu.fabric.clique)

    def test_readings_are_plausible(self, driver: GpuDriver) -> None:
        for gpu in driver.gpus().gpus:
            readings = readings_of(driver, gpu)
            total, used, free = readings.memory_mib, readings.used_mib, readings.free_mib
            assert total == gpu.memory_mib
            assert used is not None
            assert free is not None
            assert 0 <= used + free + (readings.reserved_mib or 0) <= (total or 0)
            assert readings.util_percent is None or 0 <= readings.util_percent <= 100
            assert readings.temperature_c is None or 0 < readings.temperature_c < 120
            assert readings.memory_temperature_c is None or 0 < readings.memory_temperature_c < 130
            assert readings.power_w is None or 0 < readings.power_w < 2000
            assert readings.sm_mhz is None or readings.sm_mhz > 0
            instances = {one.instance for one in gpu.instances}
            assert all(one.instance is None or one.instance in instances for one in readings.processes or ())

    def test_energy_does_not_fall(self, driver: GpuDriver) -> None:
        for gpu in driver.gpus().gpus:
            first, second = (readings_of(driver, gpu).energy_mj for _ in range(2))
            assert first is None or (second is not None and second >= first)

    def test_counters_and_shares_are_in_their_ranges(self, driver: GpuDriver) -> None:
        for gpu in driver.gpus().gpus:
            for _ in range(2):
                readings = readings_of(driver, gpu)
                assert {one.uuid for one in readings.instances} <= {one.uuid for one in gpu.instances}
                profiled = [readings.profiling, *(one.profiling for one in readings.instances)]
                for struct in (readings.nvlink, readings.violations, *profiled):
                    values = msgspec.structs.asdict(struct) if struct is not None else {}
                    is_share = isinstance(struct, Profiling)
                    most = {name: 1.0 for name in values if is_share and "bytes" not in name}
                    assert all(
                        0 <= value <= most.get(name, value) for name, value in values.items() if value is not None
                    )

    def test_an_unknown_uuid_is_an_error(self, driver: GpuDriver) -> None:
        with pytest.raises(UnknownGpuError):
            driver.read("GPU-00000000-0000-0000-0000-00000000dead")

    def test_without_an_xid_error_there_is_no_event(self, driver: GpuDriver) -> None:
        assert driver.next_xid(0.01) is None

    def test_reports_can_be_written_as_json_and_read_again(self, driver: GpuDriver) -> None:
        listed = driver.gpus()
        assert msgspec.json.decode(msgspec.json.encode(listed), type=type(listed)) == listed


class FaultyNode(msgspec.Struct):
    driver: GpuDriver
    fail: Callable[[int, int], object]
    """Let the GPU of this index report this Xid, under which it still responds."""
    lose: Callable[[int], object]
    """Let the GPU of this index fall off the bus, which it reports as Xid 79."""


class GpuFaultContract:
    """Subclasses have a fixture `node`, with at least two GPUs that are connected over NVLink."""

    def test_an_xid_error_names_the_gpu_and_is_reported_once(self, node: FaultyNode) -> None:
        second = node.driver.gpus().gpus[1]
        assert node.driver.next_xid(0) is None
        node.fail(second.index, 63)
        event = node.driver.next_xid(0)
        assert event is not None
        assert (event.uuid, event.xid, event.instance) == (second.uuid, 63, None)
        assert node.driver.next_xid(0) is None

    def test_errors_of_two_gpus_are_two_events(self, node: FaultyNode) -> None:
        assert node.driver.next_xid(0) is None
        node.fail(0, 94)
        node.fail(1, 48)
        events = [node.driver.next_xid(0), node.driver.next_xid(0)]
        assert {event.xid for event in events if event is not None} == {94, 48}

    def test_a_lost_gpu_is_listed_as_lost_with_its_uuid(self, node: FaultyNode) -> None:
        first, *others = node.driver.gpus().gpus
        node.lose(first.index)
        listed = node.driver.gpus()
        assert [(one.index, one.uuid) for one in listed.lost] == [(first.index, first.uuid)]
        assert listed.lost[0].reason
        assert [gpu.uuid for gpu in listed.gpus] == [gpu.uuid for gpu in others]

    def test_a_lost_gpu_is_no_peer(self, node: FaultyNode) -> None:
        first, second, *_ = node.driver.gpus().gpus
        assert first.uuid in {peer.uuid for peer in second.peers}
        node.lose(first.index)
        assert all(peer.uuid != first.uuid for gpu in node.driver.gpus().gpus for peer in gpu.peers)

    def test_a_lost_gpu_has_no_readings_and_others_have(self, node: FaultyNode) -> None:
        first, second, *_ = node.driver.gpus().gpus
        node.lose(first.index)
        assert isinstance(node.driver.read(first.uuid), LostGpu)
        assert isinstance(node.driver.read(second.uuid), GpuReadings)

    def test_the_xid_of_a_lost_gpu_is_reported(self, node: FaultyNode) -> None:
        first = node.driver.gpus().gpus[0]
        assert node.driver.next_xid(0) is None
        node.lose(first.index)
        event = node.driver.next_xid(0)
        assert event is not None
        assert (event.uuid, event.xid) == (first.uuid, 79)


def readings_of(driver: GpuDriver, gpu: InstalledGpu) -> GpuReadings:
    found = driver.read(gpu.uuid)
    assert isinstance(found, GpuReadings)
    return found
