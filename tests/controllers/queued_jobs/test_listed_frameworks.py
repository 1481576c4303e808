"""The kinds that Kueue's configuration lists are queued."""

from __future__ import annotations

import pytest

from shoal.api.decode import convert
from shoal.api.kueue import Configuration
from shoal.client.ecosystem_kinds import LOCAL_QUEUES
from shoal.client.item import Obj
from shoal.client.kind import Kind
from shoal.controllers.gatekeeping.held_kinds import HELD_KINDS, HoldingRules, holding_rules_of
from shoal.controllers.gatekeeping.holding import held
from shoal.controllers.gatekeeping.hooks import WebhookAddress, configuration
from shoal.controllers.gatekeeping.policies import queue_policies
from shoal.controllers.queued_jobs.job_kinds import JOB_KINDS
from shoal.units.errors import Where

KUEUES_OWN = [
    "batch/job",
    "kubeflow.org/mpijob",
    "ray.io/rayjob",
    "ray.io/rayservice",
    "ray.io/raycluster",
    "jobset.x-k8s.io/jobset",
    "trainer.kubeflow.org/trainjob",
    "kubeflow.org/paddlejob",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/tfjob",
    "kubeflow.org/xgboostjob",
    "kubeflow.org/jaxjob",
    "workload.codeflare.dev/appwrapper",
    "pod",
    "deployment",
    "statefulset",
    "leaderworkerset.x-k8s.io/leaderworkerset",
]
"""As the configuration lists them that Kueue is installed with."""


def _rules(*frameworks: str) -> HoldingRules:
    chosen = {"integrations": {"frameworks": list(frameworks)}} if frameworks else {}
    return holding_rules_of(convert(chosen, Configuration, Where()))


def _held(rules: HoldingRules) -> set[str]:
    return {kind.name for kind in HELD_KINDS if rules.holds(kind)}


CASES: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "jobs alone": (("batch/job",), {"Job"}),
    "pods by themselves": (("pod",), {"Pod"}),
    "Deployments with the pods that they make": (("deployment",), {"Deployment", "ReplicaSet", "Pod"}),
    "a name that nobody knows": (("example.com/widget",), set()),
    "none: all": ((), {kind.name for kind in HELD_KINDS}),
    "Kueue's own: all but Spark's": (tuple(KUEUES_OWN), {kind.name for kind in HELD_KINDS} - {"SparkApplication"}),
}


@pytest.mark.parametrize("case", CASES)
def test_only_listed_kinds_are_held(case: str) -> None:
    listed, expected = CASES[case]
    assert _held(_rules(*listed)) == expected


def test_policies_and_webhook_match_the_listed_kinds() -> None:
    rules = _rules("batch/job", "pod")
    names = {pair.name for pair in queue_policies(rules, LOCAL_QUEUES)}
    assert names == {f"shoal-hold-{what}{end}" for what in ("jobs", "pods") for end in ("", "-default")}
    hooks = configuration(WebhookAddress("https://x"), b"", rules, ["team"])["webhooks"]
    for hook in hooks:
        asked = {plural for rule in hook["rules"] for plural in rule["resources"]}
        assert asked <= {"jobs", "pods"}
    assert len(hooks) == 3


@pytest.mark.parametrize("kind", HELD_KINDS, ids=lambda kind: kind.name)
def test_jobs_of_other_kinds_stay_unchanged(kind: Kind) -> None:
    obj: Obj = {"metadata": {"name": "x", "labels": {"kueue.x-k8s.io/queue-name": "q"}}, "spec": {}}
    assert held(obj, (kind.group, kind.name), _rules("example.com/widget"), lambda: True) == obj


def test_every_kind_has_the_name_that_kueue_has_for_it() -> None:
    own = {"sparkoperator.k8s.io/sparkapplication", "batch.volcano.sh/job"}
    assert {row.framework for row in JOB_KINDS} - own == {name for name in KUEUES_OWN if "/" in name} - {KUEUES_OWN[-1]}
