"""What `shoal why` and `shoal decide` say of work that waits for a cost budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.manifests import Object, job, node, pod, thing
from build.why_answers import WhyAnswers, of_cluster

SPENT = "The budget of team red is spent: 1,204.10 of 1,000.00 USD in 2026-11; it resets at 2026-12-01T00:00:00Z."
TEAM: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t", "labels": {"shoal.dev/team": "red"}}}


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> WhyAnswers:
    return WhyAnswers(tmp_path, capsys)


def report(enforced: str = "spent", kind: str = "team", name: str = "red") -> Object:
    budget = {"kind": kind, "name": name, "perMonth": "1000", "spent": "1204.10", "forecast": "1300"}
    return thing(
        "config.shoal.dev/v1alpha1",
        "BudgetReport",
        "shoal-budgets",
        currency="USD",
        period="2026-11",
        computedAt="2026-11-27T12:00:00Z",
        resetsAt="2026-12-01T00:00:00Z",
        budgets=[{**budget, "enforced": enforced}],
    )


def queues() -> list[Object]:
    version = "kueue.x-k8s.io/v1beta2"
    resources = [{"name": "nvidia.com/gpu", "nominalQuota": 8}]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "f", "resources": resources}]}]
    return [
        thing(version, "ResourceFlavor", "f"),
        thing(version, "ClusterQueue", "team", spec={"namespaceSelector": {}, "resourceGroups": groups}),
        thing(version, "LocalQueue", "t/q", spec={"clusterQueue": "team"}),
        job("t/train", 1, 1, labels={"kueue.x-k8s.io/queue-name": "q"}, suspend=True),
    ]


def test_a_pod_over_budget_waits_with_the_budget_the_amounts_and_what_helps(told: WhyAnswers) -> None:
    words = told("pod/a", report(), TEAM, of_cluster(node("n", 8)), pod("t/a", 1))
    assert "waits: OverBudget" in words
    assert SPENT in words
    assert "raise perMonth of the budget in the price file" in words
    assert "restart the process that records the history" in words


def test_a_queued_job_over_budget_starts_when_the_budget_resets(told: WhyAnswers) -> None:
    words = told("job/train", report(), TEAM, of_cluster(node("n", 8)), *queues())
    assert "waits: OverBudget" in words
    assert SPENT in words
    assert "(2026-12-01 00:00 UTC)" in words


def test_without_enforcement_and_for_pods_without_gpus_nothing_waits(told: WhyAnswers) -> None:
    nodes = of_cluster(node("n", 8))
    assert "OverBudget" not in told("pod/a", report(""), TEAM, nodes, pod("t/a", 1))
    assert "OverBudget" not in told("pod/a", report(), TEAM, nodes, pod("t/a", limits={"cpu": "1"}))
    assert "OverBudget" not in told("pod/a", report(), nodes, pod("t/a", 1))


def test_the_queue_of_a_pod_group_of_volcano_has_its_budget(told: WhyAnswers) -> None:
    group = thing("scheduling.volcano.sh/v1beta1", "PodGroup", "t/g", spec={"minMember": 1, "queue": "batch"})
    member = pod("t/a", 1, annotations={"scheduling.k8s.io/group-name": "g"}, schedulerName="volcano")
    nodes = of_cluster(node("n", 8))
    for name in ("batch", "t/batch"):
        assert f"The budget of queue {name} is spent" in told(
            "pod/a", report("spent", "queue", name), nodes, group, member
        )
    assert "OverBudget" not in told("pod/a", report("spent", "queue", "other/batch"), nodes, group, member)


def test_local_queues_of_one_name_have_budgets_of_their_own(told: WhyAnswers) -> None:
    nodes = of_cluster(node("n", 8))
    assert "The budget of queue t/q is spent" in told("job/train", report("spent", "queue", "t/q"), nodes, *queues())
    assert "OverBudget" not in told("job/train", report("spent", "queue", "u/q"), nodes, *queues())
