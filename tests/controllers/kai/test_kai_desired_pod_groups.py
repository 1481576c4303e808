"""The PodGroup of each kind of owner, as KAI's podgrouper would write it."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.client.item import Obj
from shoal.controllers.kai.desired_pod_group import DesiredPodGroup, desired_pod_group
from shoal.controllers.kai.workload_object import OwnerReference, WorkloadObject
from shoal.units.errors import UserError


def owned(api: str, kind: str, name: str, spec: Obj | None = None, **more: Any) -> WorkloadObject:
    return WorkloadObject(api, kind, "default", name, f"uid-{name}", obj={"spec": spec or {}}, **more)


def pod(name: str = "p-0", labels: dict[str, str] | None = None, **spec: Any) -> WorkloadObject:
    owner = OwnerReference("x/v1", "X", "x", "u")
    return WorkloadObject("v1", "Pod", "default", name, f"uid-{name}", labels or {}, owner=owner, obj={"spec": spec})


def plan(
    owner: WorkloadObject,
    its: WorkloadObject | None = None,
    *below: WorkloadObject,
    cluster: WorkloadObject | None = None,
) -> DesiredPodGroup:
    """`below`: who stands between the pod and the owner."""
    return desired_pod_group(its or pod(), [*below, owner], cluster)


def parts(of: DesiredPodGroup) -> list[tuple[str, str, int]]:
    """(name, parent, least)."""
    return [(one["name"], one.get("parent", ""), one.get("minMember", 0)) for one in of.spec.get("subGroups", ())]


def replicas(**counts: int) -> Obj:
    return {name: {"replicas": count} for name, count in counts.items()}


FLAT: dict[str, tuple[WorkloadObject, int, str]] = {
    "a Job starts with any one of its pods": (owned("batch/v1", "Job", "j", {"parallelism": 4}), 1, "train"),
    "unless its minimum is written on it": (
        owned("batch/v1", "Job", "j", {"parallelism": 4}, annotations={"kai.scheduler/batch-min-member": "3"}),
        3,
        "train",
    ),
    "a ReplicaSet is no gang": (owned("apps/v1", "ReplicaSet", "r", {"replicas": 3}), 1, "train"),
    "nor is a StatefulSet": (owned("apps/v1", "StatefulSet", "s", {"replicas": 3}), 1, "train"),
    "unless its pods come at once and it says so": (
        owned(
            "apps/v1",
            "StatefulSet",
            "s",
            {"replicas": 3, "podManagementPolicy": "Parallel"},
            annotations={"kai.scheduler/min-member": "3"},
        ),
        3,
        "train",
    ),
    "a Notebook is building": (owned("kubeflow.org/v1", "Notebook", "n"), 1, "build"),
    "a PipelineRun is no gang": (owned("tekton.dev/v1", "PipelineRun", "t"), 1, "train"),
    "nor is whatever nobody knows": (owned("example.org/v1", "Thing", "t"), 1, "train"),
    "a TFJob needs all of its replicas": (
        owned("kubeflow.org/v1", "TFJob", "t", {"tfReplicaSpecs": replicas(PS=2, Chief=1, Worker=4)}),
        7,
        "train",
    ),
    "an XGBoostJob too": (
        owned("kubeflow.org/v1", "XGBoostJob", "x", {"xgbReplicaSpecs": replicas(Master=1, Worker=2)}),
        3,
        "train",
    ),
    "a JAXJob whose replicas are not said has one": (
        owned("kubeflow.org/v1", "JAXJob", "x", {"jaxReplicaSpecs": {"Worker": {}}}),
        1,
        "train",
    ),
    "an MPIJob needs its launcher and its workers": (
        owned("kubeflow.org/v2beta1", "MPIJob", "m", {"mpiReplicaSpecs": replicas(Launcher=1, Worker=4)}),
        5,
        "train",
    ),
    "of one whose launcher comes later the workers do not wait for it": (
        owned(
            "kubeflow.org/v2beta1",
            "MPIJob",
            "m",
            {
                "mpiReplicaSpecs": replicas(Launcher=1, Worker=4),
                "launcherCreationPolicy": "WaitForWorkersReady",
            },
        ),
        4,
        "train",
    ),
    "a scheduling policy goes before the count": (
        owned(
            "kubeflow.org/v1",
            "TFJob",
            "t",
            {"tfReplicaSpecs": replicas(Worker=4), "runPolicy": {"schedulingPolicy": {"minAvailable": 2}}},
        ),
        2,
        "train",
    ),
    "a Knative revision starts with what it never goes below": (
        owned("serving.knative.dev/v1", "Revision", "r", annotations={"autoscaling.knative.dev/min-scale": "2"}),
        2,
        "inference",
    ),
}


@pytest.mark.parametrize(("owner", "least", "priority"), FLAT.values(), ids=FLAT.keys())
def test_owners_of_one_flat_group(owner: WorkloadObject, least: int, priority: str) -> None:
    found = plan(owner)
    assert (found.spec["minMember"], found.spec["priorityClassName"]) == (least, priority)
    assert found.name == f"pg-{owner.name}-{owner.uid}"
    assert (found.owner.kind, parts(found), found.part) == (owner.kind, [], "")


def test_each_pod_of_a_deployment_has_a_group_of_its_own_that_ends_with_it() -> None:
    found = plan(owned("apps/v1", "Deployment", "d"), pod("d-1"), owned("apps/v1", "ReplicaSet", "d-rs"))
    assert (found.name, found.owner.kind, found.spec["priorityClassName"]) == ("pg-d-1-uid-d-1", "Pod", "inference")


def test_a_pod_that_nobody_owns_is_a_group() -> None:
    found = desired_pod_group(pod("alone"), [])
    assert (found.name, found.owner.kind, found.spec["minMember"]) == ("pg-alone-uid-alone", "Pod", 1)


def test_spark_without_an_operator_groups_by_its_application() -> None:
    labels = {"spark-app-name": "pi", "spark-app-selector": "spark-1f"}
    driver = pod("driver", labels)
    assert desired_pod_group(driver, []).name == desired_pod_group(pod("exec", labels), [driver]).name == "spark-1f"


PASSED = {
    "a CronJob's Jobs": owned("batch/v1", "CronJob", "top", labels={"kai.scheduler/queue": "q"}),
    "a TrainJob's": owned("trainer.kubeflow.org/v1alpha1", "TrainJob", "top", labels={"kai.scheduler/queue": "q"}),
    "a Workflow's": owned("argoproj.io/v1alpha1", "Workflow", "top", labels={"kai.scheduler/queue": "q"}),
}


@pytest.mark.parametrize("top", PASSED.values(), ids=PASSED.keys())
def test_some_owners_are_passed_over_and_only_their_labels_count(top: WorkloadObject) -> None:
    found = plan(top, pod(), owned("batch/v1", "Job", "below"))
    assert (found.name, found.spec["queue"]) == ("pg-below-uid-below", "q")
    alone = plan(top, pod("step"))
    assert (alone.name, alone.owner.kind, alone.spec["queue"]) == ("pg-step-uid-step", "Pod", "q")


QUEUES: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "the owner's label goes first": ({"kai.scheduler/queue": "a"}, {"kai.scheduler/queue": "b"}, "a"),
    "then the pod's": ({}, {"kai.scheduler/queue": "b"}, "b"),
    "then the old label": ({"runai/queue": "old"}, {}, "old"),
    "the new one goes before it": ({"runai/queue": "old"}, {"kai.scheduler/queue": "b"}, "b"),
    "a project is a queue": ({"project": "p"}, {}, "p"),
    "and has one for each pool of nodes": ({"project": "p"}, {"kai.scheduler/node-pool": "h"}, "p-h"),
    "else the one of all": ({}, {}, "default-queue"),
}


@pytest.mark.parametrize(("above", "below", "queue"), QUEUES.values(), ids=QUEUES.keys())
def test_which_queue_a_group_is_in(above: dict[str, str], below: dict[str, str], queue: str) -> None:
    assert plan(owned("batch/v1", "Job", "j", labels=above), pod(labels=below)).spec["queue"] == queue


def test_a_named_priority_goes_before_the_kinds_own() -> None:
    job = owned("batch/v1", "Job", "j")
    assert plan(job, pod(priorityClassName="high")).spec["priorityClassName"] == "high"
    assert (
        plan(job, pod(labels={"priorityClassName": "build"}, priorityClassName="high")).spec["priorityClassName"]
        == "build"
    )
    said = owned("batch/v1", "Job", "j", labels={"kai.scheduler/preemptibility": "non-preemptible"})
    assert plan(said).spec["preemptibility"] == "non-preemptible"


def test_a_pytorch_job_has_a_part_for_each_role_and_an_elastic_one_needs_its_least() -> None:
    specs = {"pytorchReplicaSpecs": replicas(Master=1, Worker=3)}
    worker = pod(labels={"training.kubeflow.org/replica-type": "worker"})
    found = plan(owned("kubeflow.org/v1", "PyTorchJob", "t", specs), worker)
    assert (parts(found), found.part) == ([("master", "", 1), ("worker", "", 3)], "worker")
    elastic = plan(owned("kubeflow.org/v1", "PyTorchJob", "t", {**specs, "elasticPolicy": {"minReplicas": 2}}), worker)
    assert (elastic.spec["minMember"], parts(elastic)) == (2, [("master", "", 1), ("worker", "", 1)])
    only = plan(owned("kubeflow.org/v1", "PyTorchJob", "t", {**specs, "elasticPolicy": {"minReplicas": 1}}), worker)
    # No worker is needed, and none is of a part that is not there.
    assert (parts(only), only.part) == ([("master", "", 1)], "")


RAY: Obj = {
    "workerGroupSpecs": [
        {"groupName": "gpu", "replicas": 4, "minReplicas": 2, "numOfHosts": 2},
        {"groupName": "cpu", "replicas": 3},
        {"groupName": "off", "replicas": 3, "suspend": True},
    ]
}


def test_ray_needs_its_head_and_the_least_workers_of_each_group() -> None:
    cluster = owned("ray.io/v1", "RayCluster", "c", RAY)
    worker = pod(labels={"ray.io/group": "gpu"})
    found = plan(owned("ray.io/v1", "RayJob", "r"), worker, cluster, cluster=cluster)
    assert found.name == "pg-r-uid-r"
    assert (parts(found), found.part) == ([("headgroup", "", 1), ("gpu", "", 4), ("cpu", "", 3)], "gpu")
    grows = owned("ray.io/v1", "RayCluster", "c", {**RAY, "enableInTreeAutoscaling": True})
    assert parts(plan(grows, worker, cluster=grows)) == [("headgroup", "", 1), ("gpu", "", 4)]
    with pytest.raises(UserError, match="RayCluster not found"):
        plan(owned("ray.io/v1", "RayJob", "r"), pod())


def test_each_replica_of_a_leader_worker_set_is_a_gang() -> None:
    def of(policy: str, index: str, node: str = "") -> DesiredPodGroup:
        spec = {"leaderWorkerTemplate": {"size": 4}, "startupPolicy": policy}
        key = "leaderworkerset.sigs.k8s.io/"
        its = pod(labels={f"{key}group-index": "1", f"{key}worker-index": index}, nodeName=node)
        return plan(owned("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "l", spec), its)

    found = of("LeaderCreated", "2")
    assert (found.name, found.part) == ("pg-l-uid-l-group-1", "workers")
    assert parts(found) == [("leader", "", 1), ("workers", "", 3)]
    # Workers come when the leader is ready: until then it is all that there is.
    assert parts(of("LeaderReady", "0")) == [("leader", "", 1)]
    assert parts(of("LeaderReady", "0", "n1")) == parts(of("LeaderReady", "1")) == parts(found)


def test_a_job_set_is_a_tree_of_its_jobs_and_their_replicas() -> None:
    jobs: list[Obj] = [
        {"name": "driver", "template": {"spec": {}}},
        {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 4, "completions": 3}}},
    ]
    key = "jobset.sigs.k8s.io/"
    its = pod(labels={f"{key}replicatedjob-name": "w", f"{key}job-index": "1"})
    found = plan(owned("jobset.x-k8s.io/v1alpha2", "JobSet", "s", {"replicatedJobs": jobs}), its)
    assert found.part == "w-replica-1"
    assert parts(found) == [
        ("driver", "", 0),
        ("driver-replica-0", "driver", 1),
        ("w", "", 0),
        ("w-replica-0", "w", 3),
        ("w-replica-1", "w", 3),
    ]
    policy = {"startupPolicyOrder": "InOrder"}
    ordered = owned("jobset.x-k8s.io/v1alpha2", "JobSet", "s", {"replicatedJobs": jobs, "startupPolicy": policy})
    assert (plan(ordered, its).name, plan(ordered, its).spec["minMember"]) == ("pg-s-uid-s-w", 6)


def test_a_topology_on_the_owner_is_the_groups() -> None:
    keys = {"kai.scheduler/topology": "net", "kai.scheduler/topology-required-placement": "rack"}
    found = plan(owned("batch/v1", "Job", "j", annotations=keys))
    assert found.spec["topologyConstraint"] == {"topology": "net", "requiredTopologyLevel": "rack"}


WRONG: dict[str, tuple[WorkloadObject, str]] = {
    "a minimum that is no number": (
        owned("batch/v1", "Job", "j", annotations={"kai.scheduler/batch-min-member": "many"}),
        "is not a whole number above zero",
    ),
    "a kind without its replicas": (owned("kubeflow.org/v1", "PyTorchJob", "t"), "has no replicas"),
    "an MPIJob without a launcher": (
        owned("kubeflow.org/v1", "MPIJob", "m", {"mpiReplicaSpecs": replicas(Worker=2)}),
        "has no replicas",
    ),
    "a gang of pods that come one after the other": (
        owned("apps/v1", "StatefulSet", "s", annotations={"kai.scheduler/min-member": "2"}),
        "one after the other",
    ),
}


@pytest.mark.parametrize(("owner", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_in_an_owner_is_told(owner: WorkloadObject, words: str) -> None:
    with pytest.raises(UserError, match=words):
        plan(owner)


def test_a_name_fits_however_long_the_owners_is() -> None:
    found = plan(WorkloadObject("batch/v1", "Job", "default", "j" * 250, "the-uid"))
    assert len(found.name) == 253
    assert found.name.endswith("j-the-uid")
