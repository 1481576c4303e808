"""The exporter shows what the driver and the kubelet reported, and what does not answer affects nothing else."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

import msgspec
import pytest

from build.exporter_nodes import ExporterNode, Row, owners_below, rows_in
from build.fake_nvml import GPU_IS_LOST, NOT_SUPPORTED, UNKNOWN, FakeGpu, FakeNvml
from build.gpu_pods import gpu_pod, granted
from shoal.agent.exporter.gpu_sampler import GpuSampler
from shoal.agent.exporter.node_state import NodeState
from shoal.agent.exporter.node_watch import NodeWatch, Sources
from shoal.agent.exporter.settings import ExporterSettings
from shoal.agent.nvml import NvmlDriver
from shoal.agent.nvml_library import NvmlLibrary
from shoal.devices.agent_series import ALL
from shoal.devices.dcgm_holders import ClaimedDevice, ContainerHolding, HolderOptions
from shoal.devices.dcgm_selection import selection_of_file
from shoal.devices.port import GpuProcess, GpuReadings, XidEvent
from shoal.embedded.gpus.node_gpus import Use

UTIL, USED, TEMP = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_TEMP"
UIDS = [f"0000000{number}-0000-4000-8000-000000000000" for number in range(3)]
SETTINGS = ExporterSettings(hostname="node-1")


def by_gpu(rows: list[Row]) -> dict[str, float]:
    return {labels["gpu"]: value for labels, value in rows}


def held(pod: str, *ids: str, resource: str = "nvidia.com/gpu") -> ContainerHolding:
    return ContainerHolding(pod, "team", "main", resource, ids)


def test_each_gpu_has_its_readings_and_the_name_of_the_node() -> None:
    node = ExporterNode()
    node.read()
    rows = node.rows()
    assert [labels["gpu"] for labels, _ in rows[TEMP]] == [str(index) for index in range(8)]
    assert {labels["Hostname"] for labels, _ in rows[TEMP]} == {"node-1"}
    assert {labels["DCGM_FI_DRIVER_VERSION"] for labels, _ in rows[TEMP]} == {"580.95.05"}


def test_before_the_first_reading_there_are_no_values_but_the_health_of_each_gpu() -> None:
    rows = ExporterNode().rows()
    assert TEMP not in rows
    assert by_gpu(rows["shoal_gpu_responding"]) == {str(index): 0 for index in range(8)}


def test_a_gpu_that_hangs_has_a_health_series_and_the_others_are_fresh() -> None:
    node = ExporterNode()
    node.read()
    first = node.driver.gpus().gpus[0].uuid
    answer = node.driver.hung[first] = Event()
    hanging = Thread(target=node.sampler(first).take)
    hanging.start()
    node.read(at_s=1_011.0)
    rows = node.rows()
    assert by_gpu(rows["shoal_gpu_responding"]) == {"0": 0, **{str(index): 1 for index in range(1, 8)}}
    assert by_gpu(rows["shoal_gpu_last_reading_age_seconds"]) == {"0": 11, **{str(index): 0 for index in range(1, 8)}}
    assert "0" not in by_gpu(rows[TEMP])
    assert "1" in by_gpu(rows[TEMP])
    assert "0" in by_gpu(rows["DCGM_FI_DEV_XID_ERRORS"])
    answer.set()
    hanging.join()
    assert by_gpu(node.rows()["shoal_gpu_responding"])["0"] == 1


def test_a_driver_that_fails_for_one_gpu_leaves_the_others() -> None:
    node = ExporterNode()
    node.driver.broken.add(node.driver.gpus().gpus[3].uuid)
    node.read()
    rows = node.rows()
    assert "3" not in by_gpu(rows[TEMP])
    assert len(rows[TEMP]) == 7
    assert by_gpu(rows["shoal_gpu_responding"])["3"] == 0


def test_a_gpu_that_is_lost_keeps_its_labels_and_one_that_was_never_listed_has_its_number() -> None:
    node = ExporterNode()
    node.read()
    uuid = node.driver.gpus().gpus[2].uuid
    node.manager.fail(2, 79)
    node.state.list_gpus(node.driver.gpus())
    node.sampler(uuid).take()
    labels = next(labels for labels, value in node.rows()["shoal_gpu_responding"] if value == 0)
    assert (labels["gpu"], labels["UUID"], labels["pci_bus_id"]) == ("2", uuid, "00000000:48:00.0")
    late = ExporterNode()
    late.manager.fail(2, 79)
    late.state = type(late.state)(SETTINGS, "580", asks_kubelet=False)
    late.state.list_gpus(late.driver.gpus())
    lost = [labels for labels, value in late.rows()["shoal_gpu_responding"] if labels["pci_bus_id"] == ""]
    assert [labels["gpu"] for labels in lost] == ["2"]


def test_pods_are_named_on_the_gpus_that_they_hold_and_stay_when_the_kubelet_is_silent() -> None:
    node = ExporterNode()
    node.read()
    gpus = node.driver.gpus().gpus
    node.pods.now = [held("train-0", gpus[0].uuid, gpus[1].uuid)]
    node.watch.list_pods()
    pods = {labels["gpu"]: labels.get("pod") for labels, _ in node.rows()[TEMP]}
    assert pods == {"0": "train-0", "1": "train-0", **{str(index): None for index in range(2, 8)}}
    assert node.rows()["shoal_agent_pod_devices_up"] == [({}, 1)]
    node.pods.now = None
    with pytest.raises(Exception, match="does not answer"):
        node.watch.list_pods()
    assert {labels["gpu"]: labels.get("pod") for labels, _ in node.rows()[TEMP]} == pods
    assert node.rows()["shoal_agent_pod_devices_up"] == [({}, 0)]


def test_instances_have_rows_of_their_own_with_their_pods() -> None:
    node = ExporterNode("dgx-h100[mig=all-1g.10gb]")
    node.read()
    one = node.driver.gpus().gpus[0].instances[2]
    node.pods.now = [held("serve-0", one.uuid, resource="nvidia.com/mig-1g.10gb")]
    node.watch.list_pods()
    rows = node.rows()
    assert (UTIL in rows, len(rows[USED]), len(rows["DCGM_FI_PROF_GR_ENGINE_ACTIVE"])) == (False, 56, 56)
    named = [labels for labels, _ in rows[USED] if "pod" in labels]
    assert [(labels["pod"], labels["GPU_I_ID"], labels["GPU_I_PROFILE"]) for labels in named] == [
        ("serve-0", str(one.instance), "1g.10gb")
    ]
    assert by_gpu(rows["shoal_gpu_allocated_ratio"])["0"] == pytest.approx(1 / 7)


@pytest.mark.parametrize(
    ("machine", "device", "gpus", "instances"),
    [
        ("dgx-h100", "gpu-1", ["1"], []),
        ("dgx-h100", "gpu-8", [], []),
        ("dgx-h100[mig=all-1g.10gb]", "gpu-1-mig-1g10gb-19-2", ["1"], ["1"]),
        ("dgx-h100[mig=all-1g.10gb]", "gpu-1-mig-1g10gb-19-7", [], []),
        ("dgx-h100[mig=all-1g.10gb]", "gpu-1-mig-2g20gb-14-2", [], []),
    ],
)
def test_pods_with_claims_are_named_on_the_gpu_and_the_instance_of_their_device(
    machine: str, device: str, gpus: list[str], instances: list[str]
) -> None:
    node = ExporterNode(machine, ExporterSettings("", node_name="node-1"))
    node.read()
    claims = [ClaimedDevice("claim", "team", "gpu.nvidia.com", pool, device) for pool in ("node-1", "node-2")]
    node.pods.now = [ContainerHolding("claim-0", "team", "main", claimed=tuple(claims))]
    node.watch.list_pods()
    rows = node.rows()
    assert [labels["gpu"] for labels, _ in rows[TEMP] if labels.get("dra_claim_name") == "claim"] == gpus
    named = [labels for labels, _ in rows[USED] if labels.get("pod") == "claim-0" and "GPU_I_ID" in labels]
    assert [labels["gpu"] for labels in named] == instances
    assert {labels["dra_mig_profile"] for labels in named} == ({"1g.10gb"} if instances else set())
    part = by_gpu(rows["shoal_gpu_allocated_ratio"])["1"]
    assert part == pytest.approx(1 / 7 if instances else len(gpus))


def test_performance_counters_of_gpus_before_hopper_are_absent_and_not_zero() -> None:
    for machine, has_them in (("dgx-a100-80", False), ("dgx-h100", True)):
        node = ExporterNode(machine)
        node.read()
        assert ("DCGM_FI_PROF_SM_ACTIVE" in node.rows()) == has_them


def test_pods_of_a_shared_gpu_have_the_memory_of_their_processes(tmp_path: Path) -> None:
    node = ExporterNode("g5.xlarge[time-slicing=4]")
    for number in range(3):
        granted(node.manager.admit(gpu_pod(str(number), 1)))
    for number, memory_mib in ((0, 1_000), (1, 2_000)):
        assert node.manager.start(str(number), "main", Use(0.4, memory_mib)) is None
    uuid = node.driver.gpus().gpus[0].uuid
    found = node.driver.read(uuid)
    assert isinstance(found, GpuReadings)
    pids = [process.pid for process in found.processes or ()]
    pods = {pid: ("team", f"pod-{number}", UIDS[number]) for number, pid in enumerate(pids)}
    node = ExporterNode("g5.xlarge[time-slicing=4]", owners=owners_below(tmp_path, pods))
    node.driver.changes[uuid] = found
    node.pods.now = [held(f"pod-{number}", f"{uuid}::{number}") for number in range(3)]
    node.watch.list_pods()
    node.read()
    rows = {labels.get("pod"): value for labels, value in node.rows()[USED]}
    assert rows == {None: 3_000, "pod-0": 1_000, "pod-1": 2_000, "pod-2": 0}
    assert {labels["vgpu"] for labels, _ in node.rows()[TEMP]} == {"0", "1", "2"}


def test_a_pod_has_no_part_of_a_shared_gpu_while_the_pod_of_a_process_is_unknown(tmp_path: Path) -> None:
    owners = owners_below(tmp_path, {77: ("team", "pod-0", UIDS[0])})
    node = ExporterNode("g5.xlarge[time-slicing=4]", owners=owners)
    uuid = node.driver.gpus().gpus[0].uuid
    processes = (GpuProcess(77, 1_000, util_percent=30), GpuProcess(78, 500, util_percent=20))
    node.driver.changes[uuid] = GpuReadings(util_percent=50, used_mib=1_500, processes=processes)
    node.pods.now = [held(f"pod-{number}", f"{uuid}::{number}") for number in range(2)]
    node.watch.list_pods()
    node.read()
    assert {labels.get("pod"): value for labels, value in node.rows()[USED]} == {None: 1_500, "pod-0": 1_000}
    assert {labels.get("pod"): value for labels, value in node.rows()[UTIL]} == {None: 50, "pod-0": 30}


def test_the_uid_of_a_pod_is_found_by_its_folder_of_logs(tmp_path: Path) -> None:
    holders = HolderOptions(has_pod_uid=True)
    owners = owners_below(tmp_path, {77: ("team", "train-0", UIDS[0])})
    node = ExporterNode(settings=ExporterSettings("node-1", holders=holders), owners=owners)
    node.read()
    node.pods.now = [held("train-0", node.driver.gpus().gpus[0].uuid)]
    node.watch.list_pods()
    assert [labels["pod_uid"] for labels, _ in node.rows()[TEMP] if "pod" in labels] == [UIDS[0]]


def test_xid_errors_are_counted_and_the_last_one_stays() -> None:
    text = "DCGM_FI_DEV_XID_ERRORS, gauge, last\nDCGM_EXP_XID_ERRORS_COUNT, gauge, recent\n"
    selected = ExporterSettings("node-1", selection=selection_of_file(text, ()), xid_window_ms=60_000)
    node = ExporterNode(settings=selected)
    node.read()
    uuid = node.driver.gpus().gpus[1].uuid
    node.driver.xids = [XidEvent(uuid, 31), XidEvent(uuid, 31), XidEvent(uuid, 94)]
    assert [node.watch.next_xid() for _ in range(4)] == [True, True, True, False]
    rows = node.rows()
    assert [(labels["err_code"], value) for labels, value in rows["DCGM_FI_DEV_XID_ERRORS"][:2]] == [
        ("0", 0),
        ("94", 94),
    ]
    counts = [(labels["gpu"], labels.get("xid"), value) for labels, value in rows["DCGM_EXP_XID_ERRORS_COUNT"][:4]]
    assert counts == [("0", None, 0), ("1", "31", 2), ("1", "94", 1), ("2", None, 0)]
    assert {labels["window_size_in_ms"] for labels, _ in rows["DCGM_EXP_XID_ERRORS_COUNT"]} == {"60000"}
    node.now_s += 61
    assert {value for _, value in node.rows()["DCGM_EXP_XID_ERRORS_COUNT"]} == {0}
    assert [(labels["xid"], value) for labels, value in node.rows()["shoal_gpu_xid_errors_total"]] == [
        ("31", 2),
        ("94", 1),
    ]


@pytest.mark.parametrize(("machine", "status", "value"), [("dgx-h100", "OK", 0), ("g6.12xlarge", "NotSupported", 5)])
def test_the_status_of_nvlink_is_shown_towards_each_other_gpu(machine: str, status: str, value: int) -> None:
    text = "DCGM_EXP_P2P_STATUS, gauge, NVLink\n"
    node = ExporterNode(machine, ExporterSettings("node-1", selection=selection_of_file(text, ())))
    node.read()
    rows = node.rows()["DCGM_EXP_P2P_STATUS"]
    count = len(node.driver.gpus().gpus)
    pairs = {(labels["gpu"], labels["peer_gpu"]) for labels, _ in rows}
    assert len(rows) == len(pairs) == count * (count - 1)
    assert {(labels["link_status"], shown) for labels, shown in rows} == {(status, value)}


def test_clocks_that_are_reduced_are_counted_by_reason() -> None:
    text = "DCGM_EXP_CLOCK_EVENTS_COUNT, gauge, recent\n"
    node = ExporterNode("g6.12xlarge", ExporterSettings("node-1", selection=selection_of_file(text, ())))
    uuid = node.driver.gpus().gpus[0].uuid
    node.driver.changes[uuid] = GpuReadings(throttle_reasons=("sw_power_cap", "hw_thermal_slowdown", "board_limit"))
    for at_s in (1_000.0, 1_005.0):
        node.read(at_s)
    events = {labels.get("clock_event"): value for labels, value in node.rows()["DCGM_EXP_CLOCK_EVENTS_COUNT"]}
    assert events == {"power_cap": 2, "hw_thermal": 2, None: 0}
    seconds = {labels["reason"]: value for labels, value in node.rows()["shoal_gpu_throttled_seconds_total"]}
    assert seconds == {"sw_power_cap": 5, "hw_thermal_slowdown": 5, "board_limit": 5}


def test_allocated_and_active_time_and_energy_are_counted() -> None:
    node = ExporterNode()
    first, second = node.driver.gpus().gpus[:2]
    node.pods.now = [held("train-0", first.uuid), held("idle-0", second.uuid)]
    node.watch.list_pods()
    node.driver.changes = {
        first.uuid: GpuReadings(util_percent=50, energy_mj=12_500),
        second.uuid: GpuReadings(util_percent=0),
    }
    for at_s in (1_000.0, 1_010.0):
        node.read(at_s)
    node.now_s = 1_012.0
    rows = {name: by_gpu(found) for name, found in node.rows().items() if name.startswith("shoal_gpu")}
    assert [rows["shoal_gpu_allocated_seconds_total"][gpu] for gpu in "012"] == [10, 10, 0]
    assert [rows["shoal_gpu_active_seconds_total"][gpu] for gpu in "01"] == [5, 0]
    assert [rows["shoal_gpu_idle_seconds"][gpu] for gpu in "01"] == [0, 12]
    assert rows["shoal_gpu_energy_joules_total"]["0"] == 12.5
    assert "1" not in rows["shoal_gpu_energy_joules_total"]


def test_without_a_kubelet_nothing_is_said_about_allocation() -> None:
    node = ExporterNode(asks_kubelet=False)
    node.read()
    assert not {"shoal_gpu_allocated_ratio", "shoal_gpu_allocated_seconds_total", "shoal_agent_pod_devices_up"} & set(
        node.rows()
    )


def test_own_series_follow_the_conventions_of_prometheus() -> None:
    for series in ALL:
        assert series.name.startswith("shoal_")
        assert series.name.endswith("_total") == (series.kind == "counter")
        assert series.words.endswith(".")
        assert not {"ms", "mib", "mj", "percent"} & set(series.name.split("_"))


def test_the_threads_read_all_gpus_and_the_kubelet() -> None:
    node = ExporterNode(settings=msgspec.structs.replace(SETTINGS, interval_s=0.01))
    node.pods.now = [held("train-0", node.driver.gpus().gpus[0].uuid)]
    node.watch.start()
    try:
        node.watch.wait_for_readings(2, 30)
        rows = rows_in(node.state.text(node.now_s))
    finally:
        node.watch.stop()
    assert len(rows[TEMP]) == 8
    assert rows[TEMP][0][0]["pod"] == "train-0"


@pytest.mark.parametrize("name", [name for name in vars(NvmlLibrary) if name.startswith(("nvmlDevice", "nvmlGpm"))])
@pytest.mark.parametrize("code", [UNKNOWN, GPU_IS_LOST, NOT_SUPPORTED])
def test_a_function_that_fails_for_one_gpu_leaves_the_metrics_of_the_others(name: str, code: int) -> None:
    library = FakeNvml([FakeGpu(index, links=["switch"] * 18) for index in range(2)])
    driver = NvmlDriver(library)
    state = NodeState(SETTINGS, "580", asks_kubelet=False)
    watch = NodeWatch(driver, state, SETTINGS, Sources(), lambda: 0.0)
    state.list_gpus(driver.gpus())
    library.fail(name, code, gpu=0)
    if name != "nvmlDeviceGetCount":
        state.list_gpus(driver.gpus())
    for gpu in (library.gpus[0], library.gpus[1]):
        GpuSampler(driver, gpu.uuid, lambda: 0.0, watch.take).take()
    rows = rows_in(state.text(0.0))
    assert by_gpu(rows["shoal_gpu_responding"])["1"] == 1
    assert by_gpu(rows[TEMP])["1"] == 44
    assert set(by_gpu(rows["shoal_gpu_responding"])) == {"0", "1"}
