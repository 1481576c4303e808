"""What programs on one device do to each other, and what they die of."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.fleets import machine
from build.gpu_pods import config_map, device_manager, gpu_pod, granted
from shoal.embedded.gpus.contention import ContentionSettings, pace
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.node_gpus import Use
from shoal.embedded.machines.fleet_spec import read_fleet

MIG = "nvidia.com/mig-1g.10gb"


def running(spec: str, utils: list[float], resource: str = "nvidia.com/gpu", memory: int = 100) -> DeviceManager:
    node = device_manager(spec)
    for number, util in enumerate(utils):
        granted(node.admit(gpu_pod(str(number), 1, resource)))
        assert node.start(str(number), "main", Use(util, memory)) is None
    return node


@pytest.mark.parametrize(
    ("spec", "utils", "paces"),
    [
        ("g5.xlarge", [1.0], [1.0]),
        ("g5.xlarge[time-slicing=4]", [1.0, 1.0], [0.475, 0.475]),
        ("g5.xlarge[time-slicing=4]", [1.0, 0.2], [0.76, 0.95]),
        ("g5.xlarge[time-slicing=4]", [0.3, 0.3], [0.95, 0.95]),
        ("g5.xlarge[time-slicing=4]", [1.0, 0.0], [1.0, 1.0]),
        ("g5.xlarge[mps=4]", [1.0, 1.0], [0.485, 0.485]),
        ("g5.xlarge[mps=4]", [0.4, 0.5], [0.97, 0.97]),
        ("g5.12xlarge[time-slicing=4]", [1.0, 1.0, 1.0, 1.0], [1.0] * 4),
    ],
)
def test_neighbours_slow_each_other(spec: str, utils: list[float], paces: list[float]) -> None:
    node = running(spec, utils)
    assert [node.pace(str(number)) for number in range(len(utils))] == pytest.approx(paces)


def test_mig_instances_feel_nothing_of_each_other() -> None:
    node = running("dgx-a100-80[mig=all-1g.10gb]", [1.0] * 20, MIG)
    assert {node.pace(str(number)) for number in range(20)} == {1.0}


def test_a_neighbour_that_stops_gives_its_time_back() -> None:
    node = running("g5.xlarge[time-slicing=4]", [1.0, 1.0])
    node.stop("1", "main")
    assert node.pace("0") == 1.0


def test_contention_can_be_switched_off() -> None:
    node = DeviceManager(read_fleet("g5.xlarge[time-slicing=4]")[0], ContentionSettings(is_on=False))
    for uid in "ab":
        node.admit(gpu_pod(uid))
        assert node.start(uid, "main", Use(1.0, 20_000)) is None
    assert node.pace("a") == 1.0


@given(st.floats(0.01, 1), st.lists(st.floats(0, 1), max_size=6), st.sampled_from(["time-slicing", "mps"]))
@settings(max_examples=examples(80), deadline=None)
def test_nobody_is_quicker_than_alone_and_nothing_is_shared_out_twice(
    own: float, others: list[float], how: str
) -> None:
    everyone = [own, *others]
    shares = []
    for index, util in enumerate(everyone):
        found = pace(util, everyone[:index] + everyone[index + 1 :], how)
        assert 0 < found <= 1
        shares.append(found * util)
    assert sum(shares) <= 1 + 1e-9


def test_time_sliced_neighbours_share_the_memory_and_the_last_comer_finds_none() -> None:
    node = running("g5.xlarge[time-slicing=4]", [0.5], memory=20_000)
    node.admit(gpu_pod("late"))
    said = node.start("late", "main", Use(memory_mib=8_000))
    assert said == (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.81 GiB. "
        "GPU 0 has a total capacity of 22.06 GiB of which 2.53 GiB is free."
    )
    assert node.start("late", "main", Use(memory_mib=2_000)) is None


def test_an_mps_client_is_held_to_its_part() -> None:
    node = device_manager("g5.xlarge[mps=4,many-per-request]")
    node.admit(gpu_pod("small"))
    node.admit(gpu_pod("large", 2))
    assert "out of memory" in str(node.start("small", "main", Use(memory_mib=6_000)))
    assert node.start("large", "main", Use(memory_mib=6_000)) is None


def test_an_instance_of_mig_has_its_own_memory() -> None:
    node = device_manager("dgx-a100-80[mig=all-1g.10gb]")
    node.admit(gpu_pod("a", 1, MIG))
    assert "out of memory" in str(node.start("a", "main", Use(memory_mib=10_000)))
    assert node.start("a", "main", Use(memory_mib=9_000)) is None


def test_what_a_program_usually_takes_always_fits() -> None:
    node = device_manager("g5.xlarge[time-slicing=4]")
    for uid in "abcd":
        node.admit(gpu_pod(uid))
        assert node.start(uid, "main", Use()) is None


def test_shares_find_room_beside_a_program_that_held_its_gpu_whole_before() -> None:
    node = DeviceManager(machine(gpus=2))
    granted(node.admit(gpu_pod("old")))
    assert node.start("old", "main", Use()) is None
    four = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    node.configure({"nvidia.com/device-plugin.config": "four"}, {"gpu-operator/sharing": config_map(four=four)})
    for number in range(7):
        granted(node.admit(gpu_pod(str(number))))
        assert node.start(str(number), "main", Use()) is None
    assert {len(node.programs.on_gpu(gpu)) for gpu in (0, 1)} <= {3, 4, 5}


@pytest.mark.parametrize(
    ("xid", "dies", "is_healthy"),
    [
        (13, ["2"], True),
        (31, ["2"], True),
        (43, ["2"], True),
        (45, ["2"], True),
        (68, ["2"], True),
        (109, ["2"], True),
        (48, ["0", "1", "2"], False),
        (63, [], False),
        (64, ["0", "1", "2"], False),
        (74, ["0", "1", "2"], False),
        (79, ["0", "1", "2"], False),
        (94, ["2"], False),
        (95, ["0", "1", "2"], False),
        (119, ["0", "1", "2"], False),
        (120, ["0", "1", "2"], False),
        (9999, ["0", "1", "2"], False),
    ],
)
def test_who_dies_of_an_xid_and_whether_the_plugin_marks_the_gpu(xid: int, dies: list[str], is_healthy: bool) -> None:
    node = running("g5.xlarge[time-slicing=4]", [0.2] * 3)
    assert node.fail(0, xid) == dies
    assert (node.resources()["nvidia.com/gpu"].allocatable == 4) == is_healthy
    node.mend(0)
    assert node.resources()["nvidia.com/gpu"].allocatable == 4


def test_clients_of_one_mps_server_die_together() -> None:
    assert running("g5.xlarge[mps=4]", [0.2] * 3).fail(0, 31) == ["0", "1", "2"]


def test_a_gpu_that_breaks_takes_all_its_instances_with_it() -> None:
    node = running("dgx-a100-80[mig=all-1g.10gb]", [0.5] * 3, MIG)
    gpu = next(node.devices_of("0", "main")[0].gpu for _ in "a")
    node.fail(gpu, 95)
    assert node.resources()[MIG].allocatable == 49
    assert node.resources()[MIG].capacity == 56


def test_no_program_starts_on_a_gpu_off_the_bus() -> None:
    node = device_manager("g5.xlarge")
    node.admit(gpu_pod("a"))
    node.fail(0, 79)
    assert node.start("a", "main", Use()) == "RuntimeError: No CUDA GPUs are available"


def test_a_fault_of_a_gpu_that_is_not_there_is_nothing() -> None:
    node = device_manager("g5.xlarge")
    assert node.fail(7, 79) == ()
    node.mend(7)
