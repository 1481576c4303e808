"""The rule about spent budgets: whose work it refuses, in which modes, and what it cannot know."""

from __future__ import annotations

from typing import Any

import pytest

from build.ruled_pods import GPU, container, pod
from shoal.policy.admission_rules.checks import findings
from shoal.policy.admission_rules.modes import LABEL_PREFIX, MODE_LABEL, RuleModes
from shoal.policy.advice import Obj
from shoal.policy.object_set import ObjectSet

OWN = f"{LABEL_PREFIX}OverBudget"
WARNED = RuleModes(default="off", rules={"OverBudget": "warn"})


def report(kind: str = "team", name: str = "red", spent: str = "1000", **more: Any) -> Obj:
    one = {"kind": kind, "name": name, "perMonth": "1000", "spent": spent, "forecast": "0", "enforced": "spent"}
    moments = {"computedAt": "2026-11-27T12:00:00Z", "resetsAt": "2026-12-01T00:00:00Z"}
    head = {"apiVersion": "config.shoal.dev/v1alpha1", "kind": "BudgetReport", "metadata": {"name": "shoal-budgets"}}
    return {**head, "period": "2026-11", **moments, "budgets": [one], **more}


def namespace(**labels: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}}


def gpu_pod(labels: dict[str, str] | None = None, scheduler: str = "", **more: Any) -> Obj:
    made = pod(container(resources={"limits": {GPU: "1"}}))
    meta = {"name": "train", "namespace": "team", "labels": labels or {}, **more}
    return {**made, "metadata": meta, "spec": {**made["spec"], **({"schedulerName": scheduler} if scheduler else {})}}


def part_of_gpu(fraction: str = "") -> Obj:
    meta = {"name": "part", "namespace": "team", "annotations": {"gpu-fraction": fraction} if fraction else {}}
    return {**pod(container(resources={})), "metadata": meta}


def volcano_job(queue: str) -> Obj:
    template = {"spec": gpu_pod()["spec"]}
    spec = {"queue": queue, "tasks": [{"name": "worker", "replicas": 2, "template": template}]}
    meta = {"name": "train", "namespace": "team"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": spec}


def found(obj: Obj, space: Obj, spent: Obj, modes: RuleModes = WARNED) -> list[str]:
    context = ObjectSet([space, spent])
    return [each.mode for each in findings(obj, context, modes) if each.rule == "OverBudget"]


RED = namespace(**{"shoal.dev/team": "red"})


@pytest.mark.parametrize(
    ("obj", "space", "spent", "is_over"),
    [
        pytest.param(gpu_pod(), RED, report(), True, id="a pod of the team"),
        pytest.param(gpu_pod(), RED, report(spent="999.99"), False, id="something is left"),
        pytest.param(gpu_pod(), namespace(), report(), False, id="a pod of another team"),
        pytest.param(gpu_pod({"team": "red"}), namespace(), report(), False, id="a pod's label names no team"),
        pytest.param(part_of_gpu(), RED, report(), False, id="a pod without GPUs"),
        pytest.param(gpu_pod(), namespace(), report("namespace", "team"), True, id="a budget of the namespace"),
        pytest.param(
            gpu_pod({"kueue.x-k8s.io/queue-name": "gpu"}), RED, report("queue", "gpu"), True, id="a queue of Kueue"
        ),
        pytest.param(
            gpu_pod({"kai.scheduler/queue": "gpu"}, "kai-scheduler"), RED, report("queue", "gpu"), True, id="KAI's"
        ),
        pytest.param(
            gpu_pod({"kai.scheduler/queue": "gpu"}, "volcano"), RED, report("queue", "gpu"), False,
            id="a label that its scheduler does not read",
        ),
        pytest.param(volcano_job("gpu"), RED, report("queue", "gpu"), True, id="the queue of a job of Volcano"),
        pytest.param(volcano_job("other"), RED, report("queue", "gpu"), False, id="another queue of Volcano"),
        pytest.param(gpu_pod(), RED, report(budgets="none"), False, id="a report of another form"),
        pytest.param(
            gpu_pod(), RED, report(computedAt="2026-12-01T00:00:00Z"), False, id="a report of a period that has ended"
        ),
        pytest.param(part_of_gpu("0.5"), RED, report(), True, id="a pod with a part of a GPU"),
    ],
)  # fmt: skip
def test_work_of_an_owner_with_a_spent_budget_is_over_it(obj: Obj, space: Obj, spent: Obj, is_over: bool) -> None:
    assert found(obj, space, spent) == (["warn"] if is_over else [])


@pytest.mark.parametrize(
    ("labels", "modes", "mode"),
    [
        ({}, RuleModes(default="enforce"), []),
        ({MODE_LABEL: "enforce"}, RuleModes(), []),
        ({OWN: "enforce"}, RuleModes(), ["enforce"]),
        ({OWN: "warn", MODE_LABEL: "enforce"}, RuleModes(default="enforce"), ["warn"]),
        ({}, RuleModes(default="off", rules={"OverBudget": "enforce"}), ["enforce"]),
        ({MODE_LABEL: "off"}, RuleModes(rules={"OverBudget": "enforce"}), ["enforce"]),
        ({OWN: "off"}, RuleModes(rules={"OverBudget": "enforce"}), []),
        ({OWN: "enforce"}, RuleModes(excluded=("team",)), []),
    ],
)
def test_only_a_setting_that_names_the_rule_switches_it_on(
    labels: dict[str, str], modes: RuleModes, mode: list[str]
) -> None:
    assert found(gpu_pod(), namespace(**{"shoal.dev/team": "red"}, **labels), report(), modes) == mode
