"""The driver over NVIDIA's library keeps the contract, here over an object with the library's functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.fake_nvml import (
    GPU_IS_LOST,
    MIB,
    NO_INSTANCE,
    NOT_SUPPORTED,
    UNKNOWN,
    FakeGpu,
    FakeInstance,
    FakeNvml,
    pci_of,
)
from build.gpu_driver_contract import FaultyNode, GpuDriverContract, GpuFaultContract, readings_of
from shoal.agent.nvml import NvmlDriver
from shoal.agent.nvml_library import NvmlLibrary
from shoal.devices.port import (
    DriverVersions,
    EccErrors,
    Fabric,
    GpuReadings,
    LinkStatus,
    LostGpu,
    MigAttributes,
    NvlinkCounters,
    NvlinkPeer,
    NvlinkStatus,
    PciePeer,
    RemappedRows,
    RetiredPages,
    Violations,
)
from shoal.units.errors import TemporaryError, UserError

MIG = [FakeInstance(9, "1g.10gb", 0, 1, 9856), FakeInstance(5, "2g.20gb", 2, 2, 20096)]
FUNCTIONS = [
    name
    for name in vars(NvmlLibrary)
    if name.startswith("nvml") and name not in ("nvmlInit", "nvmlShutdown", "nvmlSystemGetDriverVersion")
]
OF_A_GPU = [name for name in FUNCTIONS if name.startswith("nvmlDevice") and name != "nvmlDeviceGetCount"]
NEEDED = ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID", "nvmlDeviceGetPciInfo")
"""Every module has them."""


def switched(count: int = 4) -> FakeNvml:
    return FakeNvml([FakeGpu(index, links=["switch"] * 18) for index in range(count)])


def with_mig() -> FakeNvml:
    return FakeNvml([FakeGpu(0, is_mig=True, instances=MIG, processes=[(77, 300 * MIB, 9)]), FakeGpu(1)])


def driver_of(library: FakeNvml, sysfs: Path = Path("/nonexistent")) -> NvmlDriver:
    return NvmlDriver(library, sysfs)


class TestSwitchedBoard(GpuDriverContract):
    @pytest.fixture
    def driver(self) -> NvmlDriver:
        return driver_of(switched())


class TestMigMode(GpuDriverContract):
    @pytest.fixture
    def driver(self) -> NvmlDriver:
        return driver_of(with_mig())


class TestFaults(GpuFaultContract):
    @pytest.fixture
    def node(self) -> FaultyNode:
        library = switched()

        def lose(gpu: int) -> None:
            library.lose(gpu)
            library.report_xid(gpu, 79)

        return FaultyNode(driver_of(library), library.report_xid, lose)


def test_gpus_with_links_to_switches_are_connected_with_each_other() -> None:
    gpus = driver_of(switched()).gpus().gpus
    assert gpus[0].peers == tuple(NvlinkPeer(gpu.uuid, 18) for gpu in gpus[1:])


def test_a_gpu_whose_links_are_not_active_is_connected_with_none() -> None:
    library = FakeNvml([FakeGpu(0, links=["switch"] * 18), FakeGpu(1), FakeGpu(2, links=["switch"] * 12)])
    gpus = driver_of(library).gpus().gpus
    assert [gpu.peers for gpu in gpus] == [(NvlinkPeer(gpus[2].uuid, 12),), (), (NvlinkPeer(gpus[0].uuid, 12),)]


def test_versions_are_those_of_the_library() -> None:
    assert driver_of(switched()).versions() == DriverVersions("580.95.05", "12.8")


def test_direct_links_are_counted_by_the_gpu_at_their_other_end() -> None:
    links = [[pci_of(1)] * 4, [pci_of(0)] * 4, []]
    gpus = driver_of(FakeNvml([FakeGpu(index, links=one) for index, one in enumerate(links)])).gpus().gpus
    assert [gpu.peers for gpu in gpus] == [(NvlinkPeer(gpus[1].uuid, 4),), (NvlinkPeer(gpus[0].uuid, 4),), ()]


def test_a_link_to_a_gpu_of_another_machine_is_no_peer() -> None:
    gpu = driver_of(FakeNvml([FakeGpu(0, links=["00000000:AA:00.0"])])).gpus().gpus[0]
    assert gpu.peers == ()


@pytest.mark.parametrize(
    ("number", "status"), [(0, "OK"), (1, "ChipsetNotSupported"), (5, "NotSupported"), (9, "Unknown")]
)
def test_the_status_of_nvlink_has_the_name_of_its_number(number: int, status: LinkStatus) -> None:
    gpus = driver_of(FakeNvml([FakeGpu(0, p2p_status=number), FakeGpu(1), FakeGpu(2)])).gpus().gpus
    assert gpus[0].nvlink_statuses == (NvlinkStatus(1, status), NvlinkStatus(2, status))


def test_pcie_relations_are_those_of_the_library() -> None:
    gpus = driver_of(FakeNvml([FakeGpu(0), FakeGpu(1), FakeGpu(2, switch=1)])).gpus().gpus
    assert gpus[0].pcie_peers == (PciePeer(gpus[1].uuid, "single-switch"), PciePeer(gpus[2].uuid, "cross-cpu"))


@pytest.mark.parametrize(
    ("given", "fabric"),
    [
        ((bytes(range(16)), 7, 3), Fabric("00010203-0405-0607-0809-0a0b0c0d0e0f", "7")),
        ((bytes(16), 7, 3), None),
        ((bytes(range(16)), 7, 2), None),
    ],
    ids=["a cluster", "one machine of its own", "still in progress"],
)
def test_a_gpu_is_attached_to_the_fabric_of_a_cluster(given: tuple[bytes, int, int], fabric: Fabric | None) -> None:
    assert driver_of(FakeNvml([FakeGpu(0, fabric=given)])).gpus().gpus[0].fabric == fabric


def test_the_pci_class_is_read_from_sysfs(tmp_path: Path) -> None:
    for index, text in enumerate(("0x030200\n", "no number")):
        folder = tmp_path / "bus/pci/devices" / pci_of(index).lower().removeprefix("0000")
        folder.mkdir(parents=True)
        (folder / "class").write_text(text)
    gpus = driver_of(FakeNvml([FakeGpu(index) for index in range(3)]), tmp_path).gpus().gpus
    assert [gpu.pci_class for gpu in gpus] == [0x030200, None, None]


def test_what_an_instance_has_is_what_the_library_reports() -> None:
    instance = driver_of(with_mig()).gpus().gpus[0].instances[1]
    assert instance.attributes == MigAttributes(32, 2, 2, 2, 1, 0, 1, 0)


def test_instances_have_the_names_and_places_of_the_library() -> None:
    gpu = driver_of(with_mig()).gpus().gpus[0]
    rows = [(one.profile, one.instance, one.start, one.width, one.memory_mib) for one in gpu.instances]
    assert rows == [("1g.10gb", 9, 0, 1, 9856), ("2g.20gb", 5, 2, 2, 20096)]


def test_without_permission_for_gpu_instances_only_their_places_are_absent() -> None:
    library = with_mig()
    library.fail("nvmlDeviceGetGpuInstanceById", 4)
    instance = driver_of(library).gpus().gpus[0].instances[0]
    assert (instance.profile, instance.start, instance.width) == ("1g.10gb", None, None)


def test_readings_have_the_units_of_the_port() -> None:
    library = FakeNvml([FakeGpu(0, processes=[(77, 300 * MIB, NO_INSTANCE)], throttling=0x4 | 0x40 | 0x1)])
    driver = driver_of(library)
    readings = readings_of(driver, driver.gpus().gpus[0])
    assert (readings.power_w, readings.power_limit_w, readings.energy_mj) == (412.5, 700.0, 8_123_456_789)
    assert (readings.used_mib, readings.reserved_mib, readings.free_mib) == (300, 560, 81559 - 860)
    assert (readings.ecc, readings.remapped_rows) == (EccErrors(5, 1), RemappedRows(2, 1, True, False))
    assert readings.throttle_reasons == ("sw_power_cap", "hw_thermal_slowdown")
    assert [(one.pid, one.memory_mib, one.instance) for one in readings.processes or ()] == [(77, 300, None)]


def test_the_utilization_of_a_gpu_in_mig_mode_is_absent_and_its_processes_name_their_instance() -> None:
    driver = driver_of(with_mig())
    readings = readings_of(driver, driver.gpus().gpus[0])
    assert readings.util_percent is None
    assert [one.instance for one in readings.processes or ()] == [9]


def test_what_a_gpu_does_not_support_is_absent_and_not_zero() -> None:
    library = FakeNvml([FakeGpu(0)])
    for name in OF_A_GPU:
        if name not in ("nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID", "nvmlDeviceGetPciInfo"):
            library.fail(name, NOT_SUPPORTED)
    driver = driver_of(library)
    gpu = driver.gpus().gpus[0]
    assert (gpu.memory_mib, gpu.compute_capability, gpu.is_mig, gpu.serial, gpu.peers) == (None, None, None, None, ())
    assert readings_of(driver, gpu) == GpuReadings()
    assert driver.next_xid(0) is None


@pytest.mark.parametrize(
    "missing", ["nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"]
)
def test_either_name_of_the_function_is_enough_to_know_why_clocks_are_reduced(missing: str) -> None:
    library = FakeNvml([FakeGpu(0, throttling=0x20)])
    library.fail(missing, 13)
    driver = driver_of(library)
    assert readings_of(driver, driver.gpus().gpus[0]).throttle_reasons == ("sw_thermal_slowdown",)


def test_a_memory_temperature_of_zero_is_no_sensor() -> None:
    driver = driver_of(FakeNvml([FakeGpu(0, memory_temperature=0)]))
    assert readings_of(driver, driver.gpus().gpus[0]).memory_temperature_c is None


def test_a_driver_that_cannot_tell_reserved_memory_still_reports_the_rest() -> None:
    library = FakeNvml([FakeGpu(0)])

    class OldNvml:
        def __getattr__(self, name: str) -> object:
            return getattr(library, name)

        def nvmlDeviceGetMemoryInfo(self, handle: object, version: int | None = None) -> object:
            if version is not None:
                raise library.NVMLError(13)
            return library.nvmlDeviceGetMemoryInfo(handle)

    driver = NvmlDriver(OldNvml())  # type: ignore[arg-type]
    readings = readings_of(driver, driver.gpus().gpus[0])
    assert (readings.memory_mib, readings.used_mib, readings.reserved_mib) == (81559, 560, None)


class OlderModule:
    """The library through a module that lacks some functions."""

    def __init__(self, library: FakeNvml, *missing: str) -> None:
        self._library, self._missing = library, missing

    def __getattr__(self, name: str) -> object:
        if name in self._missing:
            raise AttributeError(name)
        return getattr(self._library, name)


@pytest.mark.parametrize("function", [name for name in FUNCTIONS if name not in NEEDED])
def test_a_function_that_an_older_module_lacks_is_an_absent_value(function: str) -> None:
    driver = NvmlDriver(OlderModule(with_mig(), function), Path("/nonexistent"))  # type: ignore[arg-type]
    listed = driver.gpus()
    assert (len(listed.gpus), listed.lost) == (2, ())
    assert isinstance(driver.read(listed.gpus[1].uuid), GpuReadings)
    assert driver.versions().driver == "580.95.05"


def test_what_an_older_module_lacks_is_absent_and_the_rest_is_reported() -> None:
    lacks = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetTemperature")
    driver = NvmlDriver(OlderModule(FakeNvml([FakeGpu(0, throttling=0x20)]), *lacks))  # type: ignore[arg-type]
    readings = readings_of(driver, driver.gpus().gpus[0])
    assert (readings.throttle_reasons, readings.temperature_c, readings.power_w) == (
        ("sw_thermal_slowdown",),
        None,
        412.5,
    )


def test_an_older_module_without_events_reports_none() -> None:
    driver = NvmlDriver(OlderModule(switched(), "nvmlEventSetCreate"))  # type: ignore[arg-type]
    with pytest.raises(TemporaryError, match="NVIDIA's driver does not respond"):
        driver.next_xid(0)


def test_an_older_module_whose_memory_has_no_versions_still_reports_it() -> None:
    library = FakeNvml([FakeGpu(0)])

    class OldNvml:
        def __getattr__(self, name: str) -> object:
            return getattr(library, name)

        def nvmlDeviceGetMemoryInfo(self, handle: object) -> object:
            return library.nvmlDeviceGetMemoryInfo(handle)

    driver = NvmlDriver(OldNvml())  # type: ignore[arg-type]
    readings = readings_of(driver, driver.gpus().gpus[0])
    assert (readings.memory_mib, readings.reserved_mib) == (81559, None)


@pytest.mark.parametrize("code", [NOT_SUPPORTED, GPU_IS_LOST, UNKNOWN])
@pytest.mark.parametrize("function", OF_A_GPU)
def test_no_failing_call_about_one_gpu_affects_the_other(function: str, code: int) -> None:
    library = FakeNvml([FakeGpu(0, ["switch"], is_mig=True, instances=MIG), FakeGpu(1, [pci_of(0), "switch"])])
    driver = driver_of(library)
    first, second = driver.gpus().gpus
    readings = driver.read(second.uuid)
    library.fail(function, code, first.index)
    listed = driver.gpus()
    assert [*(one.index for one in listed.lost), *(one.index for one in listed.gpus)] == [0, 1]
    assert listed.gpus[-1].uuid == second.uuid
    assert driver.read(second.uuid) == readings
    assert isinstance(driver.read(first.uuid), GpuReadings | LostGpu)
    assert driver.next_xid(0) is None
    library.report_xid(1, 94)
    event = driver.next_xid(0)
    assert event is not None
    assert event.uuid == second.uuid


@pytest.mark.parametrize("function", ["nvmlDeviceGetCount", "nvmlEventSetCreate", "nvmlEventSetWait"])
def test_a_driver_that_stops_to_respond_is_a_temporary_error(function: str) -> None:
    library = switched()
    driver = driver_of(library)
    library.fail(function, UNKNOWN)
    with pytest.raises(TemporaryError, match="NVIDIA's driver does not respond: error 999"):
        driver.next_xid(0)


def test_after_a_failed_wait_events_are_awaited_again() -> None:
    library = switched()
    driver = driver_of(library)
    assert driver.next_xid(0) is None
    library.fail("nvmlEventSetWait", UNKNOWN)
    with pytest.raises(TemporaryError):
        driver.next_xid(0)
    library.fail("nvmlEventSetWait", 0)
    library.report_xid(2, 31)
    event = driver.next_xid(0)
    assert event is not None
    assert event.xid == 31
    assert (library.open_event_sets, library.created_event_sets) == (1, 2)


def test_an_event_of_an_instance_names_it() -> None:
    library = with_mig()
    driver = driver_of(library)
    assert driver.next_xid(0) is None
    library.report_xid(0, 43, instance=9)
    event = driver.next_xid(0)
    assert event is not None
    assert event.instance == 9


def test_a_gpu_that_was_lost_from_the_beginning_has_no_uuid() -> None:
    library = switched(2)
    library.lose(1)
    listed = driver_of(library).gpus()
    assert [(one.index, one.uuid) for one in listed.lost] == [(1, None)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1\n", 1), ("-1\n", None), ("", None), (None, None)],
    ids=["a NUMA node", "a machine that does not know", "an empty file", "no file"],
)
def test_the_numa_node_is_that_of_the_pci_address(tmp_path: Path, text: str | None, expected: int | None) -> None:
    folder = tmp_path / "bus/pci/devices/0000:18:00.0"
    folder.mkdir(parents=True)
    if text is not None:
        (folder / "numa_node").write_text(text)
    assert driver_of(FakeNvml([FakeGpu(0)]), tmp_path).gpus().gpus[0].numa == expected


def test_closing_frees_the_events_and_ends_the_library() -> None:
    library = switched()
    driver = driver_of(library)
    assert driver.next_xid(0) is None
    driver.close()
    assert (library.open_event_sets, library.is_open) == (0, False)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (12, "no NVIDIA driver was found: libnvidia-ml.so.1 does not exist on this machine; install NVIDIA's driver"),
        (9, "its kernel module is not loaded; load it with: modprobe nvidia"),
        (18, "the versions of NVIDIA's library and of its loaded kernel module differ; restart the machine"),
        (4, "no permission to use NVIDIA's driver; run as root"),
        (999, "NVIDIA's driver does not respond: error 999; run nvidia-smi on this machine"),
    ],
)
def test_a_machine_without_a_driver_that_responds_is_an_error_that_says_what_to_do(code: int, message: str) -> None:
    library = switched()
    library.fail("nvmlInit", code)
    with pytest.raises(UserError) as raised:
        driver_of(library)
    assert message in str(raised.value)


def test_counters_of_the_library_are_in_the_readings() -> None:
    library = FakeNvml([FakeGpu(0, links=["switch"] * 18, processes=[(77, MIB, NO_INSTANCE), (78, MIB, NO_INSTANCE)])])
    library.gpus[0].process_utils = [(77, 2, 40), (77, 1, 90)]
    driver = driver_of(library)
    readings = readings_of(driver, driver.gpus().gpus[0])
    assert readings.nvlink == NvlinkCounters(3_000 * 1024, 5_000 * 1024, 1, 2, 3, 4)
    assert readings.violations == Violations(1_000, 2_000, 3_000, 4_000, 5_000, None)
    assert readings.retired_pages == RetiredPages(2, 1, is_pending=True)
    assert readings.ecc_lifetime == EccErrors(5, 1)
    assert (readings.encoder_percent, readings.decoder_percent, readings.pcie_replays) == (7, 9, 3)
    assert readings.is_vgpu_licensed is False
    assert [one.util_percent for one in readings.processes or ()] == [40, 0]


def test_costly_values_are_read_again_after_ten_seconds_only() -> None:
    library, now_s = FakeNvml([FakeGpu(0)]), [100.0]
    driver = NvmlDriver(library, Path("/nonexistent"), lambda: now_s[0])
    gpu = driver.gpus().gpus[0]

    def energy_at(seconds: float, energy_mj: int) -> int | None:
        now_s[0], library.gpus[0].energy_mj = seconds, energy_mj
        return readings_of(driver, gpu).energy_mj

    assert [energy_at(100, 1), energy_at(109, 2), energy_at(110, 3), energy_at(119, 4)] == [1, 1, 3, 3]


def test_a_gpu_without_links_has_no_counters_of_links_and_without_samples_no_use_per_process() -> None:
    library = FakeNvml([FakeGpu(0, processes=[(77, MIB, NO_INSTANCE)])])
    library.fail("nvmlDeviceGetNvLinkState", NOT_SUPPORTED)
    driver = driver_of(library)
    readings = readings_of(driver, driver.gpus().gpus[0])
    assert readings.nvlink is None
    assert [one.util_percent for one in readings.processes or ()] == [None]


def test_instances_have_memory_of_their_own() -> None:
    driver = driver_of(with_mig())
    gpu, plain = driver.gpus().gpus
    found = readings_of(driver, gpu).instances
    assert [(one.uuid, one.used_mib, one.reserved_mib, one.free_mib) for one in found] == [
        (gpu.instances[0].uuid, 100, 16, 9740),
        (gpu.instances[1].uuid, 100, 16, 19980),
    ]
    assert readings_of(driver, plain).instances == ()
