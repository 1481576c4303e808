"""The text of a node's DCGM exporter: Prometheus can read it, and it says what runs."""

from __future__ import annotations

import re

import pytest

from build.gpu_pods import device_manager, gpu_pod, granted
from shoal.embedded.gpus.dcgm import DcgmExporter, PodName
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.node_gpus import Use

SAMPLE = re.compile(r'(?P<name>[A-Z_0-9]+)\{(?P<labels>(?:[A-Za-z_]+="(?:[^"\\\n]|\\.)*",?)+)\} (?P<value>[0-9.]+)')
LABEL = re.compile(r'([A-Za-z_]+)="((?:[^"\\]|\\.)*)"')
UTIL, USED, XID = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_XID_ERRORS"
MIG = "nvidia.com/mig-1g.10gb"
Row = tuple[dict[str, str], float]


def rows_of(text: str) -> dict[str, list[Row]]:
    """A strict reading: each family is headed by HELP and TYPE, no series is there twice, every line is understood."""
    found: dict[str, list[Row]] = {}
    headed: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            headed.append(line)
            continue
        match = SAMPLE.fullmatch(line)
        assert match is not None, line
        name = match["name"]
        if name not in found:
            assert headed[-2].startswith(f"# HELP {name} ")
            assert headed[-1] in (f"# TYPE {name} gauge", f"# TYPE {name} counter")
        labels = dict(LABEL.findall(match["labels"]))
        assert labels not in [row[0] for row in found.get(name, [])]
        found.setdefault(name, []).append((labels, float(match["value"])))
    assert text.endswith("\n")
    return found


def scrape(node: DeviceManager, at_s: float = 0.0) -> dict[str, list[Row]]:
    pods = {uid: PodName("team", f"pod-{uid}") for uid, _ in node.held()}
    return rows_of(DcgmExporter(node).text(pods, at_s))


def started(spec: str, count: int = 1, resource: str = "nvidia.com/gpu", use: Use = Use(0.8, 8_000)) -> DeviceManager:  # noqa: B008
    node = device_manager(spec)
    for number in range(count):
        granted(node.admit(gpu_pod(str(number), 1, resource)))
        assert node.start(str(number), "main", use) is None
    return node


@pytest.mark.parametrize(
    "spec",
    ["p5.48xlarge", "g5.12xlarge[time-slicing=4]", "dgx-a100-80[mig=all-balanced]", "t4-box-4", "gb300-nvl72-tray"],
)
def test_prometheus_can_read_it(spec: str) -> None:
    node = device_manager(spec)
    granted(node.admit(gpu_pod("a", 1, min(node.resources()))))
    assert len(scrape(node)[XID]) == len(node.machine.gpus)


def test_the_labels_are_the_exporters_in_its_order() -> None:
    text = DcgmExporter(started("p5.48xlarge")).text({"0": PodName("team", "train")}, 0.0)
    line = next(line for line in text.splitlines() if line.startswith(UTIL) and 'gpu="0"' in line)
    assert [name for name, _ in LABEL.findall(line)] == [
        *("gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION"),
        *("container", "namespace", "pod"),
    ]
    labels = dict(LABEL.findall(line))
    assert (labels["modelName"], labels["device"], labels["pod"]) == ("NVIDIA H100 80GB HBM3", "nvidia0", "train")


def test_load_memory_and_power_follow_what_runs() -> None:
    found = scrape(started("p5.48xlarge"))
    util = {labels["gpu"]: value for labels, value in found[UTIL]}
    assert 78 <= util["0"] <= 82
    assert {util[str(index)] for index in range(1, 8)} == {0}
    used = {labels["gpu"]: value for labels, value in found[USED]}
    assert (used["0"], used["1"]) == (8_000, 0)
    power = {labels["gpu"]: value for labels, value in found["DCGM_FI_DEV_POWER_USAGE"]}
    assert power["1"] < 100 < 500 < power["0"] <= 700


def test_memory_adds_up_to_what_the_gpu_has() -> None:
    node = started("p5.48xlarge")
    found = scrape(node)
    parts = [found[f"DCGM_FI_DEV_FB_{name}"][0][1] for name in ("USED", "FREE", "RESERVED")]
    assert sum(parts) == node.machine.gpus[0].memory_mib


def test_time_makes_small_waves_and_the_same_time_the_same_numbers() -> None:
    node = started("p5.48xlarge")
    texts = [DcgmExporter(node).text({}, at) for at in (10.0, 10.0, 50.0)]
    assert texts[0] == texts[1] != texts[2]


def test_counters_only_grow() -> None:
    node = started("p5.48xlarge")
    exporter = DcgmExporter(node)
    name = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
    seen = [rows_of(exporter.text({}, at))[name][0][1] for at in (0.0, 60.0, 120.0)]
    node.stop("0", "main")
    seen += [rows_of(exporter.text({}, at))[name][0][1] for at in (180.0, 180.0)]
    assert seen == sorted(seen)
    assert seen[1] == pytest.approx(60 * 1000 * 630, rel=0.15)


def test_energy_counts_from_boot_whoever_looks_first() -> None:
    node = started("p5.48xlarge")
    exporter = DcgmExporter(node, 1_000.0)
    exporter.account(1_060.0)
    node.stop("0", "main")
    found = rows_of(exporter.text({}, 1_160.0))
    energy = [value for _, value in found["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]]
    idle = found["DCGM_FI_DEV_POWER_USAGE"][0][1]
    assert energy[1:] == pytest.approx([160 * 1000 * idle] * 7)
    assert energy[0] == pytest.approx(1000 * (60 * 630 + 100 * idle), rel=0.15)
    exporter.boot(2_000.0)
    after = rows_of(exporter.text({}, 2_010.0))["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]
    assert after[0][1] == pytest.approx(10 * 1000 * idle)


def test_an_idle_holder_is_named_and_does_nothing() -> None:
    node = device_manager("p5.48xlarge")
    granted(node.admit(gpu_pod("a")))
    labels, value = scrape(node)[UTIL][0]
    assert (labels["pod"], labels["container"], value) == ("pod-a", "main", 0)


def test_pods_of_a_shared_gpu_have_rows_of_their_own() -> None:
    found = scrape(started("g5.xlarge[time-slicing=4]", 2, use=Use(0.4, 1_000)))
    whole = [value for labels, value in found[USED] if "pod" not in labels]
    parts = {labels["pod"]: value for labels, value in found[USED] if "pod" in labels}
    assert (whole, parts) == ([2_000], {"pod-0": 1_000, "pod-1": 1_000})
    assert {labels["vgpu"] for labels, _ in found[USED] if "pod" in labels} == {"0", "1"}
    assert [labels["pod"] for labels, _ in found["DCGM_FI_DEV_GPU_TEMP"]] == ["pod-0", "pod-1"]


def test_a_gpu_that_is_cut_shows_its_instances_and_no_utilisation() -> None:
    node = started("dgx-a100-80[mig=all-1g.10gb]", 1, MIG, Use(0.5, 1_000))
    found = scrape(node)
    assert UTIL not in found
    busy = [row for row in found["DCGM_FI_PROF_GR_ENGINE_ACTIVE"] if "pod" in row[0]]
    assert len(found["DCGM_FI_PROF_GR_ENGINE_ACTIVE"]) == 56
    ((labels, value),) = busy
    assert (labels["GPU_I_PROFILE"], labels["pod"]) == ("1g.10gb", "pod-0")
    assert 0.48 <= value <= 0.52
    ids = {labels["GPU_I_ID"] for labels, _ in found[USED] if labels["gpu"] == "0"}
    assert ids == {str(number) for number in range(7, 14)}


def test_nvlink_is_counted_where_there_is_one() -> None:
    assert "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL" in scrape(device_manager("p5.48xlarge"))
    assert "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL" not in scrape(device_manager("g5.12xlarge"))


def test_the_last_xid_stays_until_the_gpu_is_mended() -> None:
    node = device_manager("p5.48xlarge")
    node.fail(3, 48)
    labels, value = scrape(node)[XID][3]
    assert (labels["gpu"], labels["err_code"], labels["err_msg"], value) == ("3", "48", "Double Bit ECC Error", 48)
    node.mend(3)
    assert scrape(node)[XID][3][1] == 0


def test_a_gpu_off_the_bus_shows_its_xid_alone() -> None:
    node = device_manager("p5.48xlarge")
    node.fail(3, 79)
    found = scrape(node)
    assert found[XID][3][1] == 79
    assert [labels["gpu"] for labels, _ in found[UTIL]] == ["0", "1", "2", "4", "5", "6", "7"]
