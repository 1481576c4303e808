"""The judge of other schedulers' cases: it must be able to say no, and it must not look at the answer first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .__main__ import main, result_of, results_of

KAI = "NVIDIA/KAI-Scheduler@0 somewhere"
OPEN_CASES = Path(__file__).parents[3] / "shared" / "scenarios"


def case(**changes: Any) -> dict[str, Any]:
    return {
        "id": "one",
        "kind": "schedule",
        "source": "volcano-sh/volcano@0 somewhere",
        "nodes": [{"name": "n1", "gpus": 2, "cpu": 8, "memory": 8_000_000_000}],
        "queues": [{"name": "q", "quota": None, "limit": None}],
        "jobs": [
            {
                "name": "train",
                "queue": "q",
                "priority": 0,
                "created_order": 0,
                "minAvailable": 2,
                "tasks": [{"name": f"train-{i}", "state": "Pending", "gpus": 1, "cpu": 1} for i in range(2)],
            }
        ],
        "config": {"actions": ["allocate"], "cycles": 1},
        "expect": {
            "jobs": {"train": {"state": "Bound", "bound_count": 2, "node": "n1"}},
            "evicted": [],
            "evictedComplete": True,
        },
        **changes,
    }


def expecting(**job: Any) -> dict[str, Any]:
    return case(expect={"jobs": {"train": job}, "evicted": []})


def test_a_case_that_ends_as_expected_passes_on_both_levels() -> None:
    result = result_of(case())
    assert (result.status, result.level, result.diff) == ("pass", 2, [])


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"bound_count": 1}, "expected 1 bound, got 2"),
        ({"state": "Pending"}, "expected Pending, got Bound"),
        ({"state": "Nominated"}, "expected Nominated, got Bound"),
    ],
)
def test_another_outcome_fails_on_the_first_level(job: dict[str, Any], words: str) -> None:
    result = result_of(expecting(**job))
    assert (result.status, result.level) == ("fail", 0)
    assert words in result.diff[0]


def test_another_node_fails_on_the_second_level() -> None:
    result = result_of(expecting(state="Bound", bound_count=2, node="n2"))
    assert (result.status, result.level) == ("fail", 1)


def test_nodes_declared_alike_are_interchangeable() -> None:
    nodes = [{"name": name, "gpus": 2, "cpu": 8, "memory": 8_000_000_000} for name in ("n1", "n2")]
    wanted = {"jobs": {"train": {"bound_count": 2, "node": "n2"}}, "evicted": []}
    assert result_of(case(nodes=nodes, expect=wanted)).status == "fail"
    assert result_of(case(nodes=nodes, expect=wanted, symmetricNodes=[["n1", "n2"]])).status == "pass"


def test_an_eviction_nobody_expected_fails() -> None:
    result = result_of(case(expect={"jobs": {}, "evicted": ["train-0"], "evictedComplete": True}))
    assert result.diff == ["evicted: expected ['train-0'], got []"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "rehearse"}, "kind rehearse is not known"),
        ({"usesNonDefaultGates": True}, "gates"),
    ],
)
def test_a_case_that_needs_what_is_not_there_is_told_apart_with_the_reason(change: dict[str, Any], words: str) -> None:
    result = result_of(case(**change))
    assert result.status == "out_of_scope"
    assert words in result.reason


def test_a_ranking_is_judged_tier_by_tier() -> None:
    nodes = [{"name": "a", "gpus": 4, "freeGpus": 1}, {"name": "b", "gpus": 4, "freeGpus": 3}]
    shape = {"kind": "node-score", "nodes": nodes, "resource": "gpu", "request": {"gpus": 1}}
    packed = {"config": {"strategy": "binpack"}, "expect": {"ranking": [["a"], ["b"]]}}
    spread = {"config": {"strategy": "spread"}, "expect": {"ranking": [["a"], ["b"]]}}
    assert result_of(case(**shape, **packed)).status == "pass"
    assert result_of(case(**shape, **spread)).status == "fail"


def test_the_command_prints_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gang.json").write_text(json.dumps({"feature": "gang", "count": 1, "cases": [case()]}))
    (tmp_path / "kueue.json").write_text(json.dumps({"group": "g", "scenarios": [{"id": "k", "apiInvalid": True}]}))
    assert main([str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["totals"] == {"pass": 1, "fail": 0, "out_of_scope": 1}
    assert [each["family"] for each in document["cases"]] == ["schedulers", "kueue"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none")]) == 2
    assert "none: there is no such file or folder" in capsys.readouterr().err


def kai(nodes: list[dict[str, Any]], jobs: list[dict[str, Any]], *actions: str, **changes: Any) -> dict[str, Any]:
    config = {"actions": list(actions) or ["allocate"], "cycles": 1, **changes.pop("config", {})}
    return case(source=KAI, nodes=nodes, jobs=jobs, config=config, **{"queues": [kai_queue("q")], **changes})


def kai_queue(name: str, **gpu: float) -> dict[str, Any]:
    """Without bounds but for those of GPUs that are given."""
    bounds = {
        bound: {"gpu": gpu.get(bound, -1), "cpu": -1, "memory": -1} for bound in ("quota", "limit", "overQuotaWeight")
    }
    return {"name": name, **bounds, "overQuotaWeight": {"gpu": 1, "cpu": 1, "memory": 1}}


def job(name: str, *tasks: dict[str, Any], order: int = 0, priority: int = 50, **more: Any) -> dict[str, Any]:
    named = [{"name": f"{name}-{number}", "cpu": 1, **task} for number, task in enumerate(tasks)]
    common = {"name": name, "queue": "q", "priority": priority, "created_order": order, "minAvailable": 1}
    return {**common, "tasks": named, **more}


def on(node: str, **asks: Any) -> dict[str, Any]:
    return {"state": "Running", "node": node, **asks}


def waiting(**asks: Any) -> dict[str, Any]:
    return {"state": "Pending", **asks}


def node(name: str, gpus: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": name, "gpus": gpus, "gpuMemory": 100, "cpu": 10, "memory": 8_000_000_000, **more}


def wanting(evicted: list[str] | None = None, **jobs: dict[str, Any]) -> dict[str, Any]:
    return {"jobs": jobs, "evicted": evicted or [], "evictedComplete": True}


@pytest.mark.parametrize("name", ["migInstances", "labels", "taints", "gpuMemory", "maxPods"])
def test_null_says_nothing(name: str) -> None:
    nodes = [{"name": "n1", "gpus": 2, "cpu": 8, "memory": 8_000_000_000, name: None}]
    assert result_of(case(nodes=nodes)).status == "pass"


def test_a_case_that_breaks_us_fails_alone(tmp_path: Path) -> None:
    odd: list[Any] = [case(id="odd", jobs="none"), case(id="far", expect={"jobs": {"nobody": {}}}), 7, None]
    (tmp_path / "all.json").write_text(json.dumps({"feature": "gang", "cases": [*odd, case(id="good")]}))
    (tmp_path / "broken.json").write_text("{")
    results = results_of([tmp_path])
    assert [result.status for result in results] == ["fail", "fail", "fail", "fail", "pass", "fail"]
    assert all(result.diff for result in results if result.status == "fail")


def test_of_equal_jobs_the_newest_yields_whatever_its_name() -> None:
    jobs = [job("z", on("n1", gpus=1), order=0), job("a", on("n1", gpus=1), order=1)]
    jobs.append(job("p", waiting(gpus=1), order=2, priority=75))
    assert result_of(kai([node("n1", 2)], jobs, "preempt", expect=wanting(["a-0"]))).diff == []


def test_priorities_that_do_not_yield_in_kai_are_known_without_being_told() -> None:
    jobs = [job("a", on("n1", gpus=1), priority=100), job("p", waiting(gpus=1), order=1, priority=125)]
    assert result_of(kai([node("n1", 1)], jobs, "preempt", expect=wanting())).diff == []


def test_a_share_of_two_devices_is_told_by_the_devices_it_has() -> None:
    jobs = [job("a", on("n1", gpuFraction=0.5, gpuGroups=["x", "y"])), job("p", waiting(gpus=1), order=1)]
    assert result_of(kai([node("n1", 2)], jobs, expect=wanting(p={"state": "Pending"}))).diff == []


@pytest.mark.parametrize(("placement", "state"), [("pack", "Bound"), ("spread", "Pending")])
def test_shares_are_packed_or_spread_over_devices(placement: str, state: str) -> None:
    shares = [job(name, waiting(gpuFraction=0.3), order=order) for order, name in enumerate("ab")]
    jobs = [*shares, job("p", waiting(gpus=1), order=2)]
    config = {"gpuPlacement": placement}
    assert result_of(kai([node("n1", 2)], jobs, config=config, expect=wanting(p={"state": state}))).diff == []


def test_pods_without_devices_go_where_there_are_none() -> None:
    jobs = [job("a", on("n1", gpus=2)), job("p", waiting(), order=1)]
    expect = wanting(p={"state": "Bound", "node": "n2"})
    assert result_of(kai([node("n1", 4), node("n2")], jobs, expect=expect)).diff == []


def test_states_of_single_pods_are_compared() -> None:
    jobs = [job("a", waiting(gpus=1), waiting(gpus=1, taskPriority=1))]
    tasks = {"a-0": {"state": "Bound"}, "a-1": {"state": "Pending"}}
    result = result_of(kai([node("n1", 1)], jobs, expect=wanting(a={"bound_count": 1, "tasks": tasks})))
    assert (result.status, result.level) == ("fail", 0)


def test_nominations_are_judged_by_their_nodes() -> None:
    jobs = [job("a", on("n1", gpus=1)), job("p", waiting(gpus=1), order=1, priority=75)]
    nodes = [node("n1", 1), node("n2")]
    for place, level in (("n1", 2), ("n2", 1)):
        expect = wanting(["a-0"], p={"state": "NotBound", "nominatedNodes": [place]})
        assert result_of(kai(nodes, jobs, "preempt", expect=expect)).level == level


def test_binds_are_counted() -> None:
    assert result_of(case(expect={**wanting(), "newBindsTotal": 1})).diff == ["expected 1 binds, got 2"]


def test_what_changes_after_the_last_cycle_fails() -> None:
    jobs = [job("a", on("n1", gpus=1)), job("p", waiting(gpus=1), order=1, priority=75)]
    config = {"actions": ["allocate", "preempt"], "cycles": 1, "stableForCycles": 2}
    result = result_of(kai([node("n1", 1)], jobs, config=config, expect=wanting(["a-0"])))
    assert result.diff == ["still changing after the last cycle: ['a-0', 'p-0']"]


def volcano(jobs: list[dict[str, Any]], *actions: str, hooks: list[str], **expect: Any) -> list[str]:
    plugins = {"gang": {"hooks": hooks}, "priority": {"hooks": ["Preemptable"]}}
    config = {"actions": list(actions), "plugins": plugins}
    nodes = [{"name": "n1", "cpu": 2, "memory": 8_000_000_000}]
    return result_of(case(nodes=nodes, jobs=jobs, config=config, expect=wanting(**expect))).diff


@pytest.mark.parametrize(("hooks", "evicted"), [(["Preemptable"], []), ([], ["a-1"])])
def test_gangs_at_their_minimum_are_kept_whole_where_that_hook_is_on(hooks: list[str], evicted: list[str]) -> None:
    gang = job("a", on("n1"), on("n1"), minAvailable=2, priority=1)
    jobs = [gang, job("p", waiting(), order=1)]
    assert volcano(jobs, "preempt", hooks=["JobPipelined", "JobStarving", *hooks], evicted=evicted) == []


@pytest.mark.parametrize(("hook", "bound"), [("JobReady", 0), ("JobStarving", 2)])
def test_without_its_hook_a_minimum_does_not_hold(hook: str, bound: int) -> None:
    jobs = [job("a", waiting(), waiting(), waiting(), minAvailable=3)]
    assert volcano(jobs, "allocate", hooks=[hook], a={"bound_count": bound}) == []


def test_minima_of_roles_beyond_that_of_the_job_do_not_hold() -> None:
    workers = [waiting(role="worker") for _ in range(3)]
    jobs = [job("a", waiting(role="master"), *workers, minByRole={"master": 1, "worker": 2})]
    assert volcano(jobs, "allocate", hooks=["JobReady"], a={"bound_count": 2}) == []


@pytest.mark.parametrize(("action", "name"), [("backfill", "idle"), ("allocate", "busy")])
def test_pods_that_ask_for_nothing_are_left_to_backfill(action: str, name: str) -> None:
    jobs = [job("idle", {**waiting(), "cpu": 0}), job("busy", waiting(), order=1)]
    wanted = {each: {"bound_count": int(each == name)} for each in ("idle", "busy")}
    assert volcano(jobs, action, hooks=["JobReady"], **wanted) == []


def test_a_node_without_a_hypernode_of_some_tier_is_still_below_the_next() -> None:
    tiers = [{"name": "s0", "tier": 1, "nodes": ["n1", "n2"]}, {"name": "s2", "tier": 2, "nodes": ["n3"]}]
    jobs = [
        job("a", waiting(cpu=10), waiting(cpu=10), minAvailable=2, topology={"mode": "hard", "highestTierAllowed": 1})
    ]
    nodes = [node(name) for name in ("n1", "n2", "n3")]
    assert result_of(case(nodes=nodes, hyperNodes=tiers, jobs=jobs, expect=wanting(a={"bound_count": 2}))).diff == []


def test_moves_are_compared() -> None:
    jobs = [job(name, on(place, gpus=1), order=order) for order, (name, place) in enumerate((("a", "n1"), ("b", "n2")))]
    jobs.append(job("p", waiting(gpus=2), order=2))
    expect = {**wanting(["b-0"]), "movedToOtherPlacement": ["b-0"]}
    shape = kai([node("n1", 2), node("n2", 2)], jobs, "consolidation", expect=expect)
    assert result_of(shape).diff == []
    shape["expect"]["movedToOtherPlacement"] = []
    assert result_of(shape).diff == ["moved: expected [], got ['b-0']"]


def test_what_happens_in_one_cycle_is_bounded() -> None:
    jobs = [job(name, waiting(gpus=1)) for name in "ab"]
    expect = {**wanting(), "perCycleMax": {"binds": 1, "evictions": 0}}
    result = result_of(kai([node("n1", 2)], jobs, expect=expect))
    assert result.diff == ["binds of one cycle: expected at most 1, got 2"]


def test_pods_that_share_a_device_are_told_by_the_symbol_of_the_case() -> None:
    jobs = [job(name, waiting(gpuFraction=0.4), order=order) for order, name in enumerate("ab")]
    for symbols, level in ((("0", "0"), 3), (("0", "1"), 2)):
        a, b = ({"gpuGroups": [symbol]} for symbol in symbols)
        assert result_of(kai([node("n1", 2)], jobs, expect=wanting(a=a, b=b))).level == level


def test_a_division_that_differs_is_told_with_both_numbers() -> None:
    queues = [{"name": "a", "quota": 1, "limit": -1, "overQuotaWeight": 1, "requested": 3}]
    shape = {"kind": "fair-share", "queues": queues, "resource": "gpu", "total": 2}
    expect = {"fairShare": {"a": 3}, "remaining": 0}
    assert result_of(case(**shape, expect=expect)).diff == ["fair share of a: expected 3, got 2"]


@pytest.mark.parametrize(
    ("free", "ranking"),
    [([1, 4, None], [["a"], ["b", "c"]]), ([0, 0, None], [["a", "b", "c"]]), ([2, 2, None], [["a", "b"], ["c"]])],
)
def test_packing_is_ranked_on_its_own_scale(free: list[int | None], ranking: list[list[str]]) -> None:
    nodes = [
        {"name": name, "gpus": 4 if left is not None else 0, "freeGpus": left}
        for name, left in zip("abc", free, strict=True)
    ]
    shape = {"kind": "node-score", "nodes": nodes, "resource": "gpu", "request": {"gpus": 1}}
    assert result_of(case(**shape, config={"strategy": "binpack"}, expect={"ranking": ranking})).diff == []


@pytest.mark.parametrize(
    ("strategy", "best"),
    [("leastrequested", "b"), ("most-requested", "a"), ("balanced-resource", "b"), ("per-resource-strategy", "b")],
)
def test_more_strategies_are_known(strategy: str, best: str) -> None:
    nodes = [{"name": name, "cpu": 4, "memory": 8e9, "used": {"cpu": used}} for name, used in (("a", 3), ("b", 1))]
    config = {"strategy": strategy, "resources": {"cpu": {"type": "LeastAllocated"}}}
    shape = {"kind": "node-score", "nodes": nodes, "resource": "multi", "request": {"cpu": 1, "memory": 4e9}}
    (found,) = result_of(case(**shape, config=config, expect={"ranking": []})).diff
    assert found.split("got ")[1].startswith(f"[['{best}']")


@pytest.mark.skipif(not OPEN_CASES.is_dir(), reason="the open cases are not here")
def test_every_open_case_that_counts_passes() -> None:
    failed = {result.id: result.diff for result in results_of([OPEN_CASES / "schedulers"]) if result.status == "fail"}
    assert failed == {}
