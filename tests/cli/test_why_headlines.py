"""The cause in the headline of a waiting pod: nodes that the pod itself excludes count only where it excludes all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, as_file, node, pod
from shoal.cli.main import main

PENDING = {"phase": "Pending"}
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
MODEL = "nvidia.com/gpu.product"


def fleet(**spec: Any) -> list[Object]:
    """One node with H100s, and more that have another model, of which one is cordoned and one is tainted."""
    return [
        node("h", 8, labels={MODEL: "H100"}, spec=spec),
        *(node(name, 4, labels={MODEL: "L4"}) for name in "abc"),
        node("cordoned", 4, labels={MODEL: "L4"}, spec={"unschedulable": True}),
        *(node(name, 4, labels={MODEL: "L4"}, spec={"taints": [TAINT]}) for name in "xyz"),
    ]


def waits(gpus: int, model: str, **spec: Any) -> Object:
    return pod("t/p", gpus, status=PENDING, nodeSelector={MODEL: model}, **spec)


BUSY = pod("t/old", 8, "h", status={"phase": "Running"})
CASES = {
    "free-gpus-lack": ([*fleet(), BUSY, waits(4, "H100")], "NoDeviceFits"),
    "too-large": ([*fleet(), waits(16, "H100")], "NoDeviceFits"),
    "cordoned": ([*fleet(unschedulable=True), waits(4, "H100")], "NodeUnschedulable"),
    "tainted": ([*fleet(taints=[TAINT]), waits(4, "H100")], "UntoleratedTaint"),
    "no-node-is-selected": ([*fleet(), waits(4, "B200")], "NodeAffinityMismatch"),
}


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    def run(objects: list[Object], *words: str) -> Any:
        command, *rest = words
        assert main([command, *rest, "-f", as_file(tmp_path, *objects), "-o", "json"]) in (0, 1)
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize("case", CASES)
def test_why_names_the_cause_on_the_nodes_that_the_pod_selects(case: str, output: Any) -> None:
    objects, code = CASES[case]
    assert output(objects, "why", "t/p")["code"] == code


@pytest.mark.parametrize("case", CASES)
def test_the_list_of_pods_names_the_same_cause(case: str, output: Any) -> None:
    objects, code = CASES[case]
    (row,) = [each for each in output(objects, "get", "pods", "-n", "t")["items"] if each["pod"] == "t/p"]
    assert row["code"] == code


@pytest.mark.parametrize("case", CASES)
def test_a_decision_names_the_same_cause(case: str, output: Any) -> None:
    objects, code = CASES[case]
    (refused,) = output(objects, "decide")["rounds"][-1]["refused"]
    assert refused["reason"]["code"] == code
