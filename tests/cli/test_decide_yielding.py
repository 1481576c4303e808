"""Who yields and who moves in `shoal decide`, by its options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.gpu_queues import BY_PRIORITY, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, node, pod, priority_class, thing
from build.queue_manifests import configuration, flavor
from shoal.cli.main import main

OWNED = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}]


def _decided(folder: Path, capsys: pytest.CaptureFixture[str], objects: list[Object], *options: str) -> Any:
    code = main(["decide", "-f", as_file(folder, *objects), "--json", *options])
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)["rounds"]


def _evicted(rounds: Any) -> set[str]:
    return {each["pod"] for round_ in rounds for each in round_["evicted"]}


def _running(name: str, node_name: str, gpus: int, started: str, **meta: Any) -> Object:
    return pod(name, gpus, on=node_name, meta=meta, status={"phase": "Running", "startTime": started})


def _four_of_two_sizes() -> list[Object]:
    return [
        node("n1", gpus=2),
        node("n2", gpus=2),
        priority_class("high", 100),
        _running("default/old-a", "n1", 1, "2026-01-01T00:00:00Z"),
        _running("default/old-b", "n1", 1, "2026-01-01T00:00:00Z"),
        _running("default/new", "n2", 2, "2026-01-02T00:00:00Z"),
        pod("default/urgent", 2, priorityClassName="high"),
    ]


@pytest.mark.parametrize(
    ("order", "victims"),
    [
        ("lowest-priority-first", {"default/new"}),
        ("fewest-victims", {"default/new"}),
        ("fifo", {"default/old-a", "default/old-b"}),
    ],
)
def test_the_order_of_victims_can_be_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: str, victims: set[str]
) -> None:
    assert _evicted(_decided(tmp_path, capsys, _four_of_two_sizes(), "--victims", order)) == victims


def test_nobody_yields_before_the_minimum_runtime(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rounds = _decided(tmp_path, capsys, _four_of_two_sizes(), "--min-runtime", "3600")
    assert _evicted(rounds) == {"default/old-a", "default/old-b"}


def test_an_order_nobody_knows_is_one_line_with_what_was_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["decide", "-f", as_file(tmp_path, node("n1")), "--victims", "fewest-victim"])
    err = capsys.readouterr().err
    assert code == 2
    assert err == 'shoal: --victims: order of victims "fewest-victim" not found; did you mean fewest-victims?\n'


def _queued(*more: Object) -> list[Object]:
    """A workload of low priority runs for a day; one of high priority wants its GPUs."""
    low, high = gpu_workload("t/low", 1, 8, "f"), gpu_workload("t/high", 1, 8, priority=9, at="2026-01-02T00:00:00Z")
    owned = {"kueue.x-k8s.io/workload": "low"}
    running = pod("t/low-p", 8, on="n", labels={"app": "x"}, annotations=owned)
    queue = gpu_queue("t", gpus(8), preemption=BY_PRIORITY)
    return [node("n", 8), flavor(), *queue, low, high, running, *more]


def _preempted(rounds: Any) -> list[str]:
    return [each["workload"] for round_ in rounds for each in round_["preempted"]]


@pytest.mark.parametrize(("seconds", "gone"), [("86400", ["t/low"]), ("90000", [])])
def test_workloads_do_not_yield_before_the_minimum_runtime_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seconds: str, gone: list[str]
) -> None:
    assert _preempted(_decided(tmp_path, capsys, _queued(), "--min-runtime", seconds)) == gone


@pytest.mark.parametrize(("configured", "option"), [("48h", "0"), ("0s", "172800"), ("48h", "60")])
def test_the_longer_of_the_option_and_the_configuration_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], configured: str, option: str
) -> None:
    settings = configuration(shoal={"minRuntime": configured}, waitForPodsReady={"enable": False})
    assert _preempted(_decided(tmp_path, capsys, _queued(settings), "--min-runtime", option)) == []


def test_budgets_that_the_queues_respect_can_be_given_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "x"}}}
    settings = configuration(shoal={"respectBudgets": True}, waitForPodsReady={"enable": False})
    kept = _queued(settings, thing("policy/v1", "PodDisruptionBudget", "t/b", spec=spec))
    assert _preempted(_decided(tmp_path, capsys, kept)) == []
    assert _preempted(_decided(tmp_path, capsys, kept, "--break-budgets")) == ["t/low"]


def _scattered(**meta: Any) -> list[Object]:
    started = "2026-01-01T00:00:00Z"
    return [
        node("n1", gpus=2),
        node("n2", gpus=2),
        _running("default/a", "n1", 1, started, **meta),
        _running("default/b", "n2", 1, started, **meta),
        pod("default/wide", 2),
    ]


def test_a_pod_with_a_controller_moves_so_that_another_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rounds = _decided(tmp_path, capsys, _scattered(ownerReferences=OWNED))
    assert len(rounds[0]["moved"]) == 1
    assert [each["pod"] for round_ in rounds for each in round_["placed"]].count("default/wide") == 1


def test_a_pod_that_nobody_would_make_anew_does_not_move(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rounds = _decided(tmp_path, capsys, _scattered())
    assert [each for round_ in rounds for each in round_["moved"]] == []


def test_moves_can_be_switched_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rounds = _decided(tmp_path, capsys, _scattered(ownerReferences=OWNED), "--no-moves")
    assert [each for round_ in rounds for each in round_["moved"]] == []
