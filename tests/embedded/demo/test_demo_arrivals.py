"""What the three teams of the demonstration do."""

from __future__ import annotations

from collections import Counter

from shoal.embedded.demo.arrivals import LENGTH_S, NODES, TEAMS, Arrival, arrivals
from shoal.embedded.demo.quotas import QUOTAS
from shoal.embedded.machines.fleet_spec import read_fleet

_GPU = "nvidia.com/gpu"


def _gpus(one: Arrival) -> int:
    limits = one.obj["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    return int(limits.get(_GPU, 0)) * int(one.obj["spec"].get("completions", 1))


def test_the_fleet_is_sixteen_nodes_of_two_kinds_with_eight_gpus_each() -> None:
    machines = read_fleet(NODES)
    assert len(machines) == 16
    assert len({machine.profile for machine in machines}) == 2
    assert {len(machine.gpus) for machine in machines} == {8}


def test_the_same_seed_is_the_same_minute_and_another_is_not() -> None:
    assert arrivals(1) == arrivals(1)
    assert arrivals(1) != arrivals(2)


def test_everything_happens_within_the_minute_in_order() -> None:
    for turn in range(3):
        times = [one.at_s for one in arrivals(7, turn)]
        assert times == sorted(times)
        assert times[0] > 0
        assert times[-1] < LENGTH_S


def test_all_teams_have_work_and_ask_for_more_than_there_is() -> None:
    jobs = [one for one in arrivals(42) if one.what == "job"]
    assert {one.team for one in jobs} | {"serving"} == set(TEAMS)
    assert sum(_gpus(one) for one in jobs) > 2 * 128


def test_later_turns_bring_new_jobs_and_scale_what_is_there() -> None:
    names = Counter(one.name for turn in range(3) for one in arrivals(42, turn) if one.what in ("job", "deployment"))
    assert set(names.values()) == {1}
    assert {one.name for one in arrivals(42, 1) if one.what == "scale"} == {
        one.name for one in arrivals(42) if one.what == "deployment"
    }


def test_the_gpu_that_fails_is_healed() -> None:
    node = next(one.name for one in arrivals(42) if one.what == "gpu-fail")
    assert node in {machine.name for machine in read_fleet(NODES)}
    assert [one.what for one in arrivals(42) if one.name == node] == ["gpu-fail", "gpu-heal"]


def test_three_jobs_of_the_first_minute_wait_for_different_causes() -> None:
    jobs = {one.name: one.obj["spec"] for one in arrivals(42) if one.what == "job"}
    machines = read_fleet(NODES)
    products = {f"NVIDIA-{machine.gpus[0].model}" for machine in machines}
    (product,) = jobs["misspelled-label"]["template"]["spec"]["nodeSelector"].values()
    assert product not in products
    assert f"NVIDIA-{product}" in products
    (container,) = jobs["missing-mig-profile"]["template"]["spec"]["containers"]
    assert "nvidia.com/mig-3g.20gb" in container["resources"]["limits"]
    assert "3g.20gb" not in NODES
    too_large = jobs["more-than-all-quota"]
    assert too_large["completions"] * 8 > sum(QUOTAS.values())


def test_the_jobs_that_cannot_start_come_once() -> None:
    later = {one.name for turn in (1, 2) for one in arrivals(42, turn)}
    assert not later & {"misspelled-label", "missing-mig-profile", "more-than-all-quota"}
