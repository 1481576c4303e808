"""Pods of jobs that operators of other projects run: made where nobody else made them, and gangs where they say so."""

from __future__ import annotations

from typing import Any

import pytest

from build.gpu_queues import documents_of
from build.manifests import Object, node, pod, thing
from shoal.engine.events import GroupSeen, PodArrived
from shoal.store.manifest_cluster import ManifestCluster, manifest_cluster_of
from shoal.units.errors import UserError

GANG = {"shoal.dev/gang": "true"}
TEMPLATE = {"template": {"spec": pod("x", 2)["spec"]}}


def training(annotations: dict[str, str] | None = None, *, policy: Object | None = None, **meta: Any) -> Object:
    roles = {"Worker": {"replicas": 2, **TEMPLATE}, "Master": {"replicas": 1, **TEMPLATE}}
    made = thing("kubeflow.org/v1", "PyTorchJob", "t/llm", spec={"pytorchReplicaSpecs": roles})
    made["spec"] |= {"runPolicy": policy} if policy else {}
    made["metadata"] |= {"annotations": annotations or {}, **meta}
    return made


def world(*objects: Object) -> ManifestCluster:
    return manifest_cluster_of(documents_of(node("n", 8), *objects))


def arrived(found: ManifestCluster) -> dict[str, str]:
    """Pod -> gang."""
    return {event.key: event.who.group for event in found.events if isinstance(event, PodArrived)}


def test_roles_get_as_many_pods_as_they_say_whoever_leads_first() -> None:
    found = world(training())
    assert list(arrived(found)) == ["t/llm-master-0", "t/llm-worker-0", "t/llm-worker-1"]
    assert found.warnings == []


def test_a_job_marked_as_a_gang_is_one_over_all_its_roles() -> None:
    found = world(training(GANG))
    assert set(arrived(found).values()) == {"t/llm"}
    assert [event.group.minimum for event in found.events if isinstance(event, GroupSeen)] == [3]


def test_a_set_of_jobs_too() -> None:
    inner = {"spec": {"parallelism": 2, "completions": 2, **TEMPLATE}}
    spec = {"replicatedJobs": [{"name": "workers", "replicas": 2, "template": inner}]}
    found = thing("jobset.x-k8s.io/v1alpha2", "JobSet", "t/set", spec=spec)
    found["metadata"]["annotations"] = GANG
    assert arrived(world(found)) == {f"t/set-workers-{number}": "t/set" for number in range(4)}


@pytest.mark.parametrize("why", ["its pods are there", "it has ended", "some cluster made it", "it is suspended"])
def test_no_pods_are_made_of_a_job_where(why: str) -> None:
    reference = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "llm", "uid": "1", "controller": True}
    ended = training() | {"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}
    objects = {
        "its pods are there": [training(), pod("t/own", 1, meta={"ownerReferences": [reference]})],
        "it has ended": [ended],
        "some cluster made it": [training(uid="1")],
        "it is suspended": [training(policy={"suspend": True})],
    }
    assert set(arrived(world(*objects[why]))) <= {"t/own"}


def test_a_suspended_job_and_one_that_a_cluster_made_are_named() -> None:
    assert "is suspended and makes no pods" in world(training(policy={"suspend": True})).warnings[0]
    assert "PyTorchJob (kubeflow.org/v1) is not read and was skipped" in world(training(uid="1")).warnings[0]


def test_far_too_many_pods_and_wrong_words_are_told_at_their_place() -> None:
    many, wrong = training(), training()
    many["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 2_000_000_000
    wrong["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = "two"
    with pytest.raises(UserError, match=r"PyTorchJob t/llm\): spec: 2,000,000,001 pods of one job"):
        world(many)
    with pytest.raises(UserError, match=r"PyTorchJob t/llm\): spec.pytorchReplicaSpecs.Worker.replicas: expected"):
        world(wrong)
