"""Queues, Workloads, PodGroups and gangs as the dashboard reads and stores them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from build.dashboard_facts import pod
from shoal.views.dashboard.cluster_state import ClusterState
from shoal.views.dashboard.facts import GangDetail, PageSubject, PodDetail, QueueDetail, QuotaFacts
from shoal.views.dashboard.queue_reading import (
    cluster_queue,
    group,
    kai_queue,
    local_queue,
    volcano_queue,
    workload,
)
from shoal.views.dashboard.reading import pod_facts

GPU = "nvidia.com/gpu"


def _json(name: str, spec: Any, status: Any = None, namespace: str = "", **meta: Any) -> bytes:
    metadata = {"name": name, "namespace": namespace, **meta}
    return msgspec.json.encode({"metadata": metadata, "spec": spec, "status": status or {}})


def _cluster_queue(status: Any = None) -> bytes:
    resources = [{"name": "memory", "nominalQuota": "64Gi"}, {"name": GPU, "nominalQuota": 8}]
    flavors = [{"name": "h100", "resources": resources}]
    return _json("team-a", {"cohortName": "research", "resourceGroups": [{"flavors": flavors}]}, status)


def _workload(name: str, *, admitted: bool = False, owner: str = "train", **spec: Any) -> bytes:
    container = {"resources": {"requests": {GPU: "4"}}}
    pods = [{"name": "main", "count": 2, "template": {"spec": {"containers": [container]}}}]
    refused = {"type": "QuotaReserved", "status": "False"}
    refused["message"] = "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu"
    status = {"admission": {"clusterQueue": "team-a"}} if admitted else {"conditions": [refused]}
    owners = [{"kind": "Job", "name": owner}]
    spec = {"queueName": "local", "podSets": pods, **spec}
    return _json(name, spec, status, "a", creationTimestamp="2026-01-01T00:00:00Z", ownerReferences=owners)


def test_a_cluster_queue_shows_what_is_reserved_of_each_quota_gpus_first() -> None:
    used = [{"name": "h100", "resources": [{"name": GPU, "total": "12", "borrowed": "4"}]}]
    found = cluster_queue(_cluster_queue({"flavorsReservation": used, "pendingWorkloads": 3, "admittedWorkloads": 2}))
    assert (found.name, found.parent, found.pending, found.admitted) == ("team-a", "research", 3, 2)
    assert found.quotas == (
        QuotaFacts(GPU, "h100", 8, 12, 4),
        QuotaFacts("memory", "h100", 64 * 2**30, 0, 0),
    )


def test_a_cluster_queue_that_is_not_active_says_why() -> None:
    inactive = {"type": "Active", "status": "False", "reason": "FlavorNotFound", "message": "there is no flavor h100"}
    assert cluster_queue(_cluster_queue({"conditions": [inactive]})).fault == "there is no flavor h100"


def test_a_volcano_queue_shows_what_it_deserves_and_holds() -> None:
    found = volcano_queue(_json("v", {"deserved": {GPU: "4"}}, {"allocated": {GPU: "6"}, "pending": 1}))
    assert found.quotas == (QuotaFacts(GPU, "", 4, 6, 2),)
    assert found.pending == 1


def test_a_group_that_its_volcano_queue_has_let_in_is_not_pending() -> None:
    found = volcano_queue(_json("v", {}, {"pending": 1, "inqueue": 2, "running": 3}))
    assert (found.pending, found.admitted) == (1, 5)


def test_a_kai_queue_without_limit_has_no_nominal_quota() -> None:
    unlimited = kai_queue(_json("k", {"resources": {"gpu": {"quota": -1}}}, {"allocated": {GPU: "3"}}))
    assert unlimited.quotas == (QuotaFacts(GPU, "", None, 3, 0),)
    assert kai_queue(_json("k", {"resources": {"gpu": {"quota": 2}}})).quotas[0].nominal == 2


def test_the_queues_that_volcano_makes_itself_are_left_out_while_no_work_uses_them() -> None:
    cluster = ClusterState()
    cluster.queues.put_queue(volcano_queue(_json("default", {})))
    assert cluster.scene("").queues == []
    cluster.queues.put_queue(volcano_queue(_json("default", {}, {"running": 1})))
    assert [queue.name for queue in cluster.scene("").queues] == ["default"]


def test_other_queues_of_volcano_and_kai_are_shown_though_nothing_runs_in_them() -> None:
    cluster = ClusterState()
    cluster.queues.put_queue(volcano_queue(_json("vq", {})))
    cluster.queues.put_queue(kai_queue(_json("proj", {})))
    assert [queue.key for queue in cluster.scene("").queues] == ["KAI/proj", "Volcano/vq"]


def _kai_group(name: str, reason: str = "") -> bytes:
    refused = {"type": "UnschedulableOnNodePool", "status": "True", "reason": reason, "message": "no"}
    return _json(name, {"queue": "proj"}, {"schedulingConditions": [refused] if reason else None}, "a")


def test_pending_in_a_kai_queue_are_gangs_that_it_refuses_and_not_those_that_wait_for_pods_or_nodes() -> None:
    cluster = ClusterState()
    cluster.queues.put_queue(kai_queue(_json("proj", {})))
    for name, reason in {"over": "OverLimit", "small": "NotReady", "placed": "", "ended": "OverLimit"}.items():
        cluster.gangs.put_group(group(_kai_group(name, reason)))
        if name != "ended":
            cluster.put_pod(structs.replace(pod(f"{name}-0", "a", 1, ""), gang=f"a/{name}"))
    assert [queue.pending for queue in cluster.scene("").queues] == [1]
    detail = cluster.scene("", opened=PageSubject("queue", "KAI/proj")).detail
    assert isinstance(detail, QueueDetail)
    assert detail.queue.pending == 1


def test_a_workload_without_quota_waits_and_an_admitted_one_does_not() -> None:
    cluster = ClusterState()
    cluster.queues.put_local_queue(*local_queue(_json("local", {"clusterQueue": "team-a"}, namespace="a")))
    cluster.queues.put_workload(workload(_workload("w")))
    (waiting,) = cluster.scene("").workloads
    assert (waiting.full_name, waiting.pods, waiting.gpus, waiting.cluster_queue) == ("a/job/train", 2, 8, "team-a")
    assert waiting.why == "insufficient quota for nvidia.com/gpu"
    cluster.queues.put_workload(workload(_workload("w", admitted=True)))
    assert cluster.scene("").workloads == []


def test_a_queue_page_lists_its_pending_and_admitted_workloads() -> None:
    cluster = ClusterState()
    cluster.queues.put_queue(cluster_queue(_cluster_queue()))
    cluster.queues.put_local_queue("a", "local", "team-a")
    cluster.queues.put_workload(workload(_workload("w")))
    cluster.queues.put_workload(workload(_workload("r", admitted=True, owner="old")))
    cluster.queues.put_workload(workload(_workload("x", queueName="other")))
    detail = cluster.scene("", opened=PageSubject("queue", "ClusterQueue/team-a")).detail
    assert isinstance(detail, QueueDetail)
    assert ([one.name for one in detail.pending], [one.name for one in detail.admitted]) == (["w"], ["r"])
    cluster.queues.drop_queue("ClusterQueue/team-a")
    assert cluster.scene("", opened=PageSubject("queue", "ClusterQueue/team-a")).detail is None


def _gated(name: str, group_name: str) -> bytes:
    labels = {"kueue.x-k8s.io/pod-group-name": group_name, "kueue.x-k8s.io/queue-name": "local"}
    annotations = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    return _json(name, {"schedulingGates": gates}, None, "a", labels=labels, annotations=annotations)


def test_a_gated_pod_has_the_reason_of_its_workload_and_the_workload_no_row_of_its_own() -> None:
    cluster = ClusterState()
    cluster.put_pod(pod_facts(_gated("p-0", "pair")))
    (alone,) = cluster.scene("").waiting
    assert alone.why == "waits until the scheduling gate is removed: kueue.x-k8s.io/admission"
    cluster.queues.put_workload(workload(_workload("pair")))
    facts = cluster.scene("", opened=PageSubject("pod", "a/p-0"))
    assert [one.why for one in facts.waiting] == ["insufficient quota for nvidia.com/gpu"]
    assert facts.workloads == []
    assert isinstance(facts.detail, PodDetail)
    assert facts.detail.pod.why == "insufficient quota for nvidia.com/gpu"


def test_a_pod_that_no_scheduler_has_tried_names_its_scheduler() -> None:
    assert pod_facts(_json("p", {"schedulerName": "volcano"})).why == "the scheduler volcano has not tried it yet"


def test_a_gang_says_which_of_its_pods_run_and_why_the_others_wait() -> None:
    cluster = ClusterState()
    runs = structs.replace(pod("w-0", "a", 8), gang="a/w")
    waits = structs.replace(pod("w-1", "a", 8, ""), gang="a/w")
    cluster.put_pod(runs)
    cluster.put_pod(waits)
    cluster.gangs.put_group(group(_json("w", {"minMember": 2, "queue": "q"}, namespace="a")))
    facts = cluster.scene("", opened=PageSubject("gang", "a/w"))
    (gang,) = facts.gangs
    assert (gang.needs, gang.running, gang.waiting, gang.gpus, gang.queue) == (2, 1, 1, 16, "q")
    assert gang.why == "no GPU is free"
    assert isinstance(facts.detail, GangDetail)
    assert [one.name for one in facts.detail.pods] == ["w-1", "w-0"]


def test_a_gang_whose_pods_have_all_ended_is_left_out() -> None:
    cluster = ClusterState()
    cluster.put_pod(structs.replace(pod("w-0", "a", 8), gang="a/w", phase="Succeeded"))
    assert cluster.scene("").gangs == []


def test_the_minimum_of_kubernetes_own_pod_group_is_read() -> None:
    policy = {"schedulingPolicy": {"gang": {"minCount": 4}}}
    assert group(_json("w", policy, namespace="a")).needs == 4


def _member(name: str, job: str = "train", node: str = "") -> bytes:
    owners = [{"kind": "Job", "name": job, "controller": True}]
    status = {"phase": "Running" if node else "Pending"}
    return _json(name, {"nodeName": node}, status, "a", ownerReferences=owners)


def test_a_job_that_is_a_gang_is_listed_with_its_pods() -> None:
    cluster = ClusterState()
    cluster.put_pod(pod_facts(_member("train-0", node="n-0")))
    cluster.gangs.put_job("a/train", 2)
    cluster.put_pod(pod_facts(_member("train-1")))
    cluster.put_pod(pod_facts(_member("other-0", job="other")))
    facts = cluster.scene("", opened=PageSubject("gang", "a/train"))
    (gang,) = facts.gangs
    assert (gang.name, gang.needs, gang.running, gang.waiting) == ("a/train", 2, 1, 1)
    assert isinstance(facts.detail, GangDetail)
    assert [one.name for one in facts.detail.pods] == ["train-1", "train-0"]


def test_a_job_that_is_no_gang_any_more_is_not_listed() -> None:
    cluster = ClusterState()
    cluster.put_pod(pod_facts(_member("train-0")))
    cluster.gangs.put_job("a/train", 2)
    before = cluster.version
    cluster.gangs.drop_job("a/train")
    assert cluster.version > before
    assert cluster.scene("").gangs == []
    cluster.drop_pod(("a", "train-0"))
    cluster.gangs.put_job("a/train", 2)
    assert cluster.scene("").gangs == []


def test_a_pod_of_a_job_that_names_a_group_belongs_to_that_group() -> None:
    cluster = ClusterState()
    cluster.gangs.put_job("a/train", 2)
    cluster.put_pod(structs.replace(pod_facts(_member("train-0")), gang="a/g"))
    assert [gang.name for gang in cluster.scene("").gangs] == ["a/g"]
