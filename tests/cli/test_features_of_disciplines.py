"""What KAI and Volcano do not define themselves works in their queues, too: `shoal decide` and `shoal why` show it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, as_file, node, pod, thing, volcano_group
from shoal.cli.main import main

GROUP, KAI_QUEUE = "scheduling.k8s.io/group-name", "kai.scheduler/queue"
BEGAN, LATER = "2026-01-01T10:00:00Z", "2026-01-01T12:00:00Z"
RUNS = {"phase": "Running", "startTime": BEGAN}


class Told:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def why(self, name: str, objects: list[Object]) -> str:
        assert main(["why", name, "-f", as_file(self._folder, *objects)]) == 0
        return " ".join(self._capsys.readouterr().out.split())

    def decided(self, objects: list[Object], what: str) -> list[dict[str, Any]]:
        """Of all rounds."""
        assert main(["decide", "-f", as_file(self._folder, *objects), "-o", "json"]) in (0, 1)
        rounds = json.loads(self._capsys.readouterr().out)["rounds"]
        return [each for one in rounds for each in one[what]]


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(tmp_path, capsys)


def volcano_queue(**spec: Any) -> Object:
    return thing("scheduling.volcano.sh/v1beta1", "Queue", "q", spec={"weight": 1, **spec})


def of_volcano(
    name: str, gpus: int = 4, created: str = BEGAN, annotations: Object | None = None, **more: Any
) -> list[Object]:
    """A group of one pod."""
    group = volcano_group(f"t/{name}", 1, queue="q")
    group["metadata"]["creationTimestamp"] = created
    group["status"] = {"phase": "Running" if "on" in more else "Inqueue"}
    return [group, pod(f"t/{name}", gpus, annotations={GROUP: name, **(annotations or {})}, **more)]


def of_kai(
    name: str, gpus: int = 4, created: str = BEGAN, annotations: Object | None = None, **more: Any
) -> list[Object]:
    meta = {"creationTimestamp": created}
    return [pod(f"t/{name}", gpus, labels={KAI_QUEUE: "q"}, annotations=annotations, meta=meta, **more)]


def kai_queue() -> Object:
    endless = {"quota": -1, "limit": -1}
    spec = {"resources": {"gpu": endless, "cpu": endless, "memory": endless}}
    return thing("scheduling.run.ai/v2", "Queue", "q", spec=spec)


@pytest.mark.parametrize(
    ("queue", "of"), [(kai_queue(), of_kai), (volcano_queue(), of_volcano)], ids=["KAI", "Volcano"]
)
def test_of_equal_work_that_yields_which_saved_its_work_and_why_names_it(told: Told, queue: Object, of: Any) -> None:
    saved = {"shoal.dev/last-checkpoint": "2026-01-01T11:59:00Z"}
    world = [node("n", 8), queue, *of("claim", created=LATER, priority=80)]
    for first, second in (("saved", "loses"), ("loses", "saved")):
        running = [
            each
            for name in (first, second)
            for each in of(name, on="n", status=RUNS, priority=50, annotations=saved if name == "saved" else {})
        ]
        assert [each["pod"] for each in told.decided([*world, *running], "evicted")] == ["t/saved"]
        assert "preempted t/saved" in told.why("gang/claim", [*world, *running])


def half(name: str, **more: Any) -> list[Object]:
    on: Object = {"on": "n", "status": RUNS} if more.pop("runs", False) else {}
    devices = {"shoal.dev/devices": "0"} if on else {}
    return of_volcano(name, 0, annotations={"gpu-fraction": "0.5", **devices}, **on, **more)


def test_fractions_in_a_queue_of_volcano_share_a_gpu_and_count_as_parts_of_its_capability(told: Told) -> None:
    queue = volcano_queue(capability={"nvidia.com/gpu": 1})
    world = [node("n", 2), queue, *half("a"), *half("b"), *half("c")]
    placed = told.decided(world, "placed")
    assert [(each["pod"], each["devices"]) for each in placed] == [("t/a", [0]), ("t/b", [0])]
    assert "insufficient in queue q" in told.why("gang/c", world)


def test_fractions_in_a_queue_of_volcano_yield_one_by_one(told: Told) -> None:
    running = [*half("low", runs=True, priority=1), *half("high", runs=True, priority=2)]
    world = [node("n", 1), volcano_queue(), *running, *half("claim", priority=9)]
    assert [each["pod"] for each in told.decided(world, "evicted")] == ["t/low"]
