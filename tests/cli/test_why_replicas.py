"""`shoal why` says why a model server has its number of replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.manifests import Object, node, pod, thing
from build.why_answers import WhyAnswers, of_cluster, owned

ASKED = {"serving.shoal.dev/max-replicas": "8", "serving.shoal.dev/ttft-objective": "500ms"}
DECIDED = "3 replicas: 23 requests, 8 for each replica; a start takes 142 s"


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> WhyAnswers:
    return WhyAnswers(tmp_path, capsys)


def maker(kind: str, annotations: dict[str, str] | None = None, replicas: int = 3, version: str = "apps/v1") -> Object:
    labels = {"app": "llm"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    found = of_cluster(thing(version, kind, "t/llm", spec=spec))
    found["metadata"]["annotations"] = annotations or {}
    return found


def served(owner: str) -> Object:
    running = {"phase": "Running"}
    return owned(of_cluster(pod("t/llm-0", 1, on="n", labels={"app": "llm"}, status=running)), owner, "llm")


def lines(told: WhyAnswers, name: str, *objects: Object) -> list[str]:
    chapters = told.document(name, of_cluster(node("n", 8)), *objects)["chapters"]
    return [line for each in chapters if each["heading"] == "replicas" for line in each["lines"]]


@pytest.mark.parametrize("name", ["deployment/llm", "pod/llm-0"])
def test_the_metric_the_target_and_the_cold_start_are_shown(told: WhyAnswers, name: str) -> None:
    annotations = {**ASKED, "serving.shoal.dev/status": DECIDED}
    replica_set = owned(maker("ReplicaSet"), "Deployment", "llm")
    found = lines(told, name, maker("Deployment", annotations), replica_set, served("ReplicaSet"))
    assert found[0] == DECIDED
    assert "between 1 and 8 replicas; 8 requests for each" in found[1]
    assert "the first token within 0.5 s" in found[1]
    assert len(found) == 2


def test_a_pod_of_a_leader_worker_set_belongs_to_its_model(told: WhyAnswers) -> None:
    annotations = {**ASKED, "serving.shoal.dev/status": DECIDED}
    leader = maker("LeaderWorkerSet", annotations, 5, "leaderworkerset.x-k8s.io/v1")
    found = lines(
        told, "pod/llm-0", leader, owned(maker("StatefulSet"), "LeaderWorkerSet", "llm"), served("StatefulSet")
    )
    assert found[:2] == [DECIDED, "spec.replicas is 5 now"]


def test_annotations_that_cannot_be_read_are_the_reason(told: WhyAnswers) -> None:
    found = lines(told, "deployment/llm", maker("Deployment", {"serving.shoal.dev/max-replicas": "many"}))
    assert found == [
        'not scaled: annotation serving.shoal.dev/max-replicas: "many" is not a whole number of at least 1'
    ]


def test_a_model_that_no_autoscaler_has_decided_about_says_which_one_would(told: WhyAnswers) -> None:
    assert "pod-autoscaling" in lines(told, "deployment/llm", maker("Deployment", ASKED))[0]


def test_other_deployments_have_no_such_lines(told: WhyAnswers) -> None:
    assert lines(told, "deployment/llm", maker("Deployment"), served("Deployment")) == []
