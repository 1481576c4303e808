"""nvidia-smi in its forms: on the node it sees all, in a container what that was given."""

from __future__ import annotations

import pytest

from build.gpu_pods import device_manager, gpu_pod, granted
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.node_gpus import Use
from shoal.embedded.gpus.smi import CommandOutput, nvidia_smi
from shoal.embedded.gpus.smi_node import view_of_container, view_of_node

MIG = "nvidia.com/mig-1g.10gb"


def busy(
    spec: str = "p5.48xlarge", amount: int = 2, resource: str = "nvidia.com/gpu", **annotations: str
) -> DeviceManager:
    node = device_manager(spec)
    granted(node.admit(gpu_pod("a", amount, resource, **annotations)))
    assert node.start("a", "main", Use(0.9, 4_000)) is None
    return node


def inside(node: DeviceManager, *options: str) -> CommandOutput:
    return nvidia_smi(view_of_container(node, "a", "main", 0.0), options)


def on_node(node: DeviceManager, *options: str) -> CommandOutput:
    return nvidia_smi(view_of_node(node, 0.0, "2026/01/31 12:00:00.000"), options)


def test_a_container_sees_its_own_gpus_numbered_from_zero() -> None:
    node = busy(devices="3,6")
    slots = node.machine.gpus
    assert inside(node, "-L").text == (
        f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {slots[3].uuid})\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: {slots[6].uuid})\n"
    )
    assert on_node(node, "--list-gpus").text.count("\n") == 8


def test_a_container_sees_its_own_instances_below_their_gpu() -> None:
    node = busy("dgx-a100-80[mig=all-1g.10gb]", 1, MIG, devices="2:3")
    (cut,) = (one for one in node.gpus[2].cuts if one.start == 3)
    assert inside(node, "-L").text.splitlines()[1] == f"  MIG 1g.10gb      Device  0: (UUID: {cut.uuid})"
    assert on_node(node, "-L").text.count("MIG") == 56 * 2


@pytest.mark.parametrize("spec", ["p5.48xlarge", "dgx-a100-80[mig=all-balanced]", "g5.12xlarge[time-slicing=4]"])
def test_the_table_has_straight_edges(spec: str) -> None:
    node = device_manager(spec)
    granted(node.admit(gpu_pod("a", 1, min(node.resources()))))
    node.start("a", "main", Use(1.0))
    first, *lines = on_node(node).text.splitlines()
    assert first.startswith("2026")
    assert {len(line) for line in lines if line} == {91}
    assert sum("python3" in line for line in lines) == 1


def test_the_table_says_what_runs() -> None:
    text = inside(busy()).text
    assert "4000MiB /  81559MiB" in text
    assert "python3" in text
    node = device_manager("p5.48xlarge")
    granted(node.admit(gpu_pod("a")))
    assert "No running processes found" in inside(node).text


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        (
            ("--query-gpu=index,name,memory.total,memory.used", "--format=csv"),
            "index, name, memory.total [MiB], memory.used [MiB]\n0, NVIDIA H100 80GB HBM3, 81559 MiB, 4000 MiB\n",
        ),
        (("--query-gpu=index,memory.used", "--format=csv,noheader,nounits"), "0, 4000\n"),
        (("--query-gpu", "count,driver_version", "--format", "csv,noheader"), "1, 580.95.05\n"),
        (("--format=csv,noheader", "--query-gpu=compute_cap,mig.mode.current,fan.speed"), "9.0, Disabled, [N/A]\n"),
        (
            ("--query-compute-apps=process_name,used_memory", "--format=csv"),
            "process_name, used_memory [MiB]\npython3, 4000 MiB\n",
        ),
    ],
)
def test_fields_are_printed_as_csv(options: tuple[str, ...], printed: str) -> None:
    assert inside(busy(amount=1), *options) == CommandOutput(printed)


def test_a_query_may_name_one_gpu() -> None:
    said = on_node(busy(), "--query-gpu=index,timestamp", "--format=csv,noheader", "-i", "5")
    assert said.text == "5, 2026/01/31 12:00:00.000\n"
    assert on_node(busy(), "-i", "9").code == 6


def test_load_is_not_measured_on_a_gpu_that_is_cut() -> None:
    node = busy("dgx-a100-80[mig=all-1g.10gb]", 1, MIG)
    assert inside(node, "--query-gpu=utilization.gpu", "--format=csv,noheader").text == "[N/A]\n"


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (("--query-gpu=color", "--format=csv"), 2, 'Field "color" is not a valid field to query.'),
        (("--query-gpu=index",), 2, '"--format=" switch is missing'),
        (("pmon",), 2, "a simulated GPU answers"),
        (("mig", "-lgi"), 6, "No GPU instances found"),
    ],
)
def test_what_it_cannot_answer_it_says(options: tuple[str, ...], code: int, told: str) -> None:
    said = inside(busy(), *options)
    assert said.code == code
    assert told in said.text


def test_without_a_gpu_none_is_found() -> None:
    assert nvidia_smi(view_of_node(device_manager("cpu-8"), 0.0), []) == CommandOutput("No devices were found\n", 6)


def test_a_gpu_off_the_bus_cannot_be_asked() -> None:
    node = busy(devices="0,1")
    node.fail(1, 79)
    said = inside(node)
    assert said.code == 15
    assert "GPU is lost" in said.text


def matrix(node: DeviceManager) -> list[list[str]]:
    lines = on_node(node, "topo", "-m").text.splitlines()
    return [line.split("\t") for line in lines[: len(node.machine.gpus) + 1]]


def test_the_topology_shows_links_and_numa_nodes() -> None:
    rows = matrix(device_manager("p5.48xlarge"))
    assert rows[1][1:9] == [" X ", *["NV18"] * 7]
    assert [row[10] for row in rows[1:]] == list("00001111")
    pairs = matrix(device_manager("h100-nvl-box-4"))
    assert pairs[1][1:5] == [" X ", "NV18", "SYS", "SYS"]
    assert matrix(device_manager("g5.12xlarge"))[1][1:5] == [" X ", "NODE", "NODE", "NODE"]


def test_instances_and_what_could_still_be_made_are_listed() -> None:
    node = device_manager("hgx-a100-80-4[mig=all-3g.40gb]")
    instances = on_node(node, "mig", "-lgi").text.splitlines()
    assert sum("MIG 3g.40gb" in line for line in instances) == 8
    assert len({len(line) for line in instances}) == 1
    profiles = on_node(node, "mig", "-lgip").text.splitlines()
    assert sum(" 0/7 " in line for line in profiles) == 4
    empty = on_node(device_manager("hgx-a100-80-4[mig=all-enabled]"), "mig", "-lgip").text
    assert empty.count(" 7/7 ") == 4


def test_the_long_report_has_what_people_look_up() -> None:
    text = inside(busy(), "-q").text
    assert "Attached GPUs                              : 2" in text
    assert "    GPU UUID                               : GPU-" in text
    assert "Used                               : 4000 MiB" in text
