"""Why a job or a workload of a queue does not run: each cause alone, and two at once."""

from __future__ import annotations

import pytest

from build.diagnosed_clusters import causes, diagnosed, event, gpu_node, running, waiting
from build.manifests import Object, job, thing

NAMESPACE = thing("v1", "Namespace", "team")


def local(name: str = "gpus", of: str = "shared", **spec: object) -> Object:
    return thing("kueue.x-k8s.io/v1beta2", "LocalQueue", f"team/{name}", spec={"clusterQueue": of, **spec})


def cluster_queue(quota: int = 8, resource: str = "nvidia.com/gpu", **spec: object) -> Object:
    flavors = [{"name": "h100", "resources": [{"name": resource, "nominalQuota": quota}]}]
    groups = [{"coveredResources": [resource], "flavors": flavors}]
    return thing(
        "kueue.x-k8s.io/v1beta2",
        "ClusterQueue",
        "shared",
        spec={"namespaceSelector": {}, "resourceGroups": groups, **spec},
    )


OTHER_FLAVOR = thing("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "h200", spec={})
FLAVOR = thing("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "h100", spec={})


def workload(name: str = "w", gpus: int = 4, admitted: bool = False, **spec: object) -> Object:
    container = {"name": "c", "resources": {"requests": {"nvidia.com/gpu": gpus}}}
    sets = [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}]
    made = thing(
        "kueue.x-k8s.io/v1beta2", "Workload", f"team/{name}", spec={"queueName": "gpus", "podSets": sets, **spec}
    )
    if admitted:
        usage = [{"name": "main", "resourceUsage": {"nvidia.com/gpu": str(gpus)}}]
        made["status"] = {
            "conditions": [{"type": "Admitted", "status": "True"}],
            "admission": {"clusterQueue": "shared", "podSetAssignments": usage},
        }
    return made


CLOSED_AND_SMALL = cluster_queue(quota=2, namespaceSelector=None)


def stuck(*objects: Object) -> list[str]:
    return causes("queue", "team/gpus", workload(), *objects)


@pytest.mark.parametrize(
    ("objects", "identifiers"),
    [
        ([local(), cluster_queue(), FLAVOR, NAMESPACE], []),
        ([local(of="shard"), cluster_queue(), FLAVOR], ["ClusterQueueMissing"]),
        ([local(), cluster_queue(namespaceSelector=None), FLAVOR], ["NamespaceNotSelected"]),
        (
            [local(), cluster_queue(namespaceSelector={"matchLabels": {"gpus": "yes"}}), FLAVOR, NAMESPACE],
            ["NamespaceNotSelected"],
        ),
        ([local(), cluster_queue(resource="cpu"), FLAVOR], ["ResourceNotCovered"]),
        ([local(), cluster_queue(quota=2), FLAVOR], ["RequestExceedsQuota"]),
        ([local(), cluster_queue(), FLAVOR, workload("other", 6, admitted=True)], ["QuotaInUse"]),
        (
            [local(), cluster_queue(), OTHER_FLAVOR],
            ["FlavorMissing"],
        ),
        (
            [
                local(),
                cluster_queue(),
                thing("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "h100", spec={"nodeLabels": {"gpu": "h100"}}),
                gpu_node(),
            ],
            ["FlavorWithoutNodes"],
        ),
        ([local(stopPolicy="Hold"), cluster_queue(), FLAVOR], ["QueueStopped"]),
        (
            [local(), cluster_queue(quota=2, namespaceSelector=None), FLAVOR],
            ["NamespaceNotSelected", "RequestExceedsQuota"],
        ),
    ],
)
def test_a_workload_is_not_admitted_for_these_causes(objects: list[Object], identifiers: list[str]) -> None:
    assert stuck(*objects) == identifiers


def test_a_queue_that_may_borrow_is_not_too_small() -> None:
    assert stuck(local(), cluster_queue(quota=2, cohortName="all"), FLAVOR) == ["QuotaInUse"]


def test_a_job_that_names_a_queue_of_another_namespace_is_told_where_it_is() -> None:
    queued = job("lab/train", 1, 1, labels={"kueue.x-k8s.io/queue-name": "gpus"}, suspend=True)
    (cause,) = diagnosed("job", "lab/train", queued, local(), cluster_queue(), workload()).causes
    assert cause.id == "LocalQueueMissing"
    assert any("is in team" in text for text in cause.evidence)


def test_queues_that_may_not_be_read_are_not_ruled_out() -> None:
    made = workload(ownerless=True)
    found = diagnosed("queue", "team/gpus", made, local(), complete=set())
    assert found.causes == ()
    assert "the queue of the workload" in [each.check for each in found.not_run]


MEMBER = {"batch.kubernetes.io/job-name": "train"}


def member(name: str, on: str = "gpu-1") -> Object:
    return running(name, on=on, labels=MEMBER)


def test_a_part_of_a_gang_that_runs_is_detected_with_the_cause_of_the_rest() -> None:
    objects = [job("team/train", 2, 8), member("train-0"), waiting("train-1", 8, labels=MEMBER), gpu_node()]
    found = diagnosed("job", "team/train", *objects)
    assert [cause.id for cause in found.causes] == ["PartialGang", "GpusInUse"]
    assert "1 of 2 pods have a node and hold 8 devices" in found.causes[0].evidence


def test_a_whole_gang_is_ruled_out() -> None:
    objects = [job("team/train", 2, 4), member("train-0"), member("train-1", on="gpu-2")]
    found = diagnosed("job", "team/train", *objects)
    assert found.causes == ()
    assert "all of its 2 pods have a node" in [each.what for each in found.ruled_out]


def test_a_quota_that_refuses_the_pods_is_the_cause() -> None:
    train = job("team/train", 2, 8)
    said = event(train, "FailedCreate", 'pods "train-x" is forbidden: exceeded quota: gpus, requested: 8, used: 8')
    (cause,) = diagnosed("job", "team/train", train, said, NAMESPACE, gpu_node()).causes
    assert cause.id == "PodsRefused"
    assert cause.commands == ("kubectl describe resourcequota -n team",)


FAILED = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too many retries"}]


def test_a_job_that_failed_after_the_loss_of_a_node_is_told_from_one_that_failed_by_itself() -> None:
    train = job("team/train", 1, 8, backoffLimit=0)
    train["status"] = {"conditions": FAILED}
    lost = member("train-0")
    lost["status"] = {"phase": "Failed", "reason": "NodeLost"}
    found = diagnosed("job", "team/train", train, lost).causes
    assert [cause.id for cause in found] == ["JobLostWithNode", "NodeLost"]
    ended = member("train-0")
    ended["status"] = {"phase": "Failed"}
    assert causes("job", "team/train", train, ended) == ["JobFailed"]


def test_the_cluster_shows_the_causes_of_all_and_each_once() -> None:
    broken = gpu_node("gpu-2")
    broken["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    objects = [workload(), local(of="shard"), cluster_queue(), broken, waiting(gpus=16)]
    assert causes("cluster", "", *objects) == [
        "NodeNotReady",
        "NodesNotReady",
        "RequestLargerThanNodes",
        "ClusterQueueMissing",
    ]


def test_pods_that_ask_alike_are_one_cause_of_a_cluster_and_checks_that_did_not_run_are_kept() -> None:
    objects = [gpu_node(), gpu_node("gpu-2"), *(waiting(f"w-{number}", 16) for number in range(5)), waiting("small", 9)]
    found = diagnosed("cluster", "", *objects)
    assert [cause.id for cause in found.causes] == ["RequestLargerThanNodes", "RequestLargerThanNodes"]
    assert found.causes[1].evidence[-1].startswith("5 pods that ask alike wait: pod team/w-0")
    assert ("2 nodes", "Xid errors") in [(each.subject, each.check) for each in found.not_run]
