"""Gangs of a living cluster: who belongs to which, how many they need, and what changes that."""

from __future__ import annotations

from typing import Any

import pytest

from build.fed_worlds import FedWorld
from build.manifests import group, job, kai_group, pod, replicas, thing, topology, volcano_group
from shoal.client.item import Obj
from shoal.engine.events import GroupGone, GroupSeen, PodArrived, PodBound

VOLCANO = {"scheduling.k8s.io/group-name": "train"}
KUEUE_QUEUE = {"kueue.x-k8s.io/queue-name": "q"}


def owned(name: str, kind: str, owner: str, **more: Any) -> Obj:
    return pod(name, meta={"ownerReferences": [{"kind": kind, "name": owner, "uid": "u", "controller": True}]}, **more)


def below(obj: Obj, kind: str, name: str) -> Obj:
    obj["metadata"]["ownerReferences"] = [{"kind": kind, "name": name, "uid": "u", "controller": True}]
    return obj


def minima(fed: FedWorld) -> dict[str, int]:
    fed.drain()
    return {key[1]: facts.minimum for key, facts in fed.facts.items() if key[0] == "group"}


def groups_of(fed: FedWorld) -> dict[str, str]:
    fed.drain()
    return {key[1]: event.who.group for key, event in fed.facts.items() if key[0] == "pod"}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (volcano_group("train", 3), {"annotations": {"scheduling.k8s.io/group-name": "train"}}),
        (kai_group("train", 3), {"annotations": {"pod-group-name": "train"}}),
        (
            group("scheduling.x-k8s.io/v1alpha1", "train", minMember=3),
            {"labels": {"scheduling.x-k8s.io/pod-group": "train"}},
        ),
        (
            group("scheduling.k8s.io/v1alpha2", "train", schedulingPolicy={"gang": {"minCount": 3}}),
            {"schedulingGroup": {"podGroupName": "train"}},
        ),
    ],
    ids=["Volcano", "KAI", "scheduler plugins", "Kubernetes"],
)
def test_a_group_object_says_how_many_start_together(kind: Obj, words: dict[str, Any]) -> None:
    fed = FedWorld()
    fed.put(kind, pod("a", **words))
    assert minima(fed) == {"default/train": 3}
    assert groups_of(fed) == {"default/a": "default/train"}


def test_a_group_inside_a_workload_is_found_when_the_workload_comes() -> None:
    fed = FedWorld()
    fed.put(pod("a", workloadRef={"name": "w", "podGroup": "workers"}))
    assert minima(fed) == {}
    groups = [{"name": "workers", "policy": {"gang": {"minCount": 2}}}]
    fed.put(thing("scheduling.k8s.io/v1alpha1", "Workload", "w", spec={"podGroups": groups}))
    assert minima(fed) == {"default/w/workers": 2}


def test_a_group_that_promises_nothing_lets_its_pods_go_their_way() -> None:
    fed = FedWorld()
    fed.put(pod("a", schedulingGroup={"podGroupName": "train"}))
    assert groups_of(fed) == {"default/a": "default/train"}
    fed.put(group("scheduling.k8s.io/v1alpha2", "train", schedulingPolicy={"basic": {}}))
    assert groups_of(fed) == {"default/a": ""}


def test_the_queue_of_the_group_is_that_of_its_pods() -> None:
    fed = FedWorld()
    fed.put(volcano_group("train", 1, queue="gold"), pod("a", annotations=VOLCANO))
    assert [event.who.queue for event in fed.heard(PodArrived)] == ["gold"]


@pytest.mark.parametrize(
    ("annotations", "labels", "expected"),
    [
        ({}, {}, {}),
        ({"shoal.dev/gang": "true"}, {}, {"default/j": 4}),
        ({"shoal.dev/gang": "2"}, {}, {"default/j": 2}),
        ({}, KUEUE_QUEUE, {"default/j": 4}),
        ({"shoal.dev/gang": "false"}, KUEUE_QUEUE, {}),
        ({"scheduling.volcano.sh/group-min-member": "3"}, {}, {"default/j": 3}),
    ],
    ids=["no word", "true", "a number", "a queue", "false", "Volcano's word"],
)
def test_a_job_may_be_a_gang(annotations: dict[str, str], labels: dict[str, str], expected: dict[str, int]) -> None:
    fed = FedWorld()
    fed.put(job("j", 4, labels=labels, annotations=annotations), owned("j-0", "Job", "j"))
    assert minima(fed) == expected


def test_a_gang_needs_what_its_job_asks_for_before_the_pods_are_there() -> None:
    fed = FedWorld()
    fed.put(owned("j-0", "Job", "j"))
    assert minima(fed) == {}
    fed.put(job("j", 3, annotations={"shoal.dev/gang": "true"}))
    assert minima(fed) == {"default/j": 3}
    fed.put(owned("j-1", "Job", "j"), owned("j-2", "Job", "j"))
    assert minima(fed) == {"default/j": 3}
    assert set(groups_of(fed).values()) == {"default/j"}


def test_towards_its_end_a_job_needs_no_more_than_are_still_to_succeed() -> None:
    fed = FedWorld()
    work = job("j", 4, annotations={"shoal.dev/gang": "true"}, completions=6)
    fed.put(work, owned("j-0", "Job", "j"))
    assert minima(fed) == {"default/j": 4}
    fed.put({**work, "status": {"succeeded": 3}})
    assert minima(fed) == {"default/j": 3}
    fed.put({**work, "status": {"succeeded": 3, "failedIndexes": "4"}})
    assert minima(fed) == {"default/j": 2}


def test_a_member_that_succeeded_is_needed_no_more() -> None:
    fed = FedWorld()
    fed.put(volcano_group("train", 3), *(pod(name, annotations=VOLCANO, on="n1") for name in "abc"))
    assert minima(fed) == {"default/train": 3}
    fed.put(pod("a", annotations=VOLCANO, on="n1", status={"phase": "Succeeded"}))
    assert minima(fed) == {"default/train": 2}
    fed.put(pod("b", annotations=VOLCANO, on="n1", status={"phase": "Failed"}))
    assert minima(fed) == {"default/train": 2}
    assert [event.key for event in fed.world.reported()] == ["default/c"]


def test_all_jobs_of_a_job_set_are_one_gang() -> None:
    fed = FedWorld()
    template = {"spec": {"parallelism": 2, "completions": 2, "template": {"spec": {"containers": []}}}}
    spec = {"replicatedJobs": [{"name": "w", "replicas": 3, "template": template}, {"name": "l", "template": template}]}
    made = thing("jobset.x-k8s.io/v1alpha2", "JobSet", "s", spec=spec)
    made["metadata"]["annotations"] = {"shoal.dev/gang": "true"}
    fed.put(made)
    for number in range(2):
        fed.put(below(job(f"s-w-{number}", 2), "JobSet", "s"), owned(f"s-w-{number}-0", "Job", f"s-w-{number}"))
    assert minima(fed) == {"default/s": 8}
    assert set(groups_of(fed).values()) == {"default/s"}


def test_a_job_of_a_job_set_may_be_a_gang_of_its_own() -> None:
    fed = FedWorld()
    fed.put(below(job("s-w-0", 2, annotations={"shoal.dev/gang": "true"}), "JobSet", "s"))
    fed.put(owned("s-w-0-0", "Job", "s-w-0"))
    assert minima(fed) == {"default/s-w-0": 2}


def test_a_replica_set_seen_late_takes_its_pods_to_the_deployment() -> None:
    fed = FedWorld()
    requirement = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    fed.put(
        topology("kueue.x-k8s.io/v1beta1", "racks", "rack"), owned("d-0", "ReplicaSet", "r", annotations=requirement)
    )
    assert groups_of(fed) == {"default/d-0": "default/r"}
    fed.put(below(replicas("ReplicaSet", "r", 1), "Deployment", "d"))
    assert groups_of(fed) == {"default/d-0": "default/d"}
    assert list(minima(fed)) == ["default/d"]


def test_a_group_that_is_deleted_is_gone_and_its_pods_still_name_it() -> None:
    fed = FedWorld()
    fed.put(volcano_group("train", 2), pod("a", annotations=VOLCANO))
    fed.drain()
    fed.drop(volcano_group("train", 2))
    assert [event.name for event in fed.heard(GroupGone)] == ["default/train"]
    assert groups_of(fed) == {"default/a": "default/train"}


def test_the_status_of_a_group_and_the_start_of_its_pods_change_nothing_of_it() -> None:
    fed = FedWorld()
    fed.put(volcano_group("train", 2), pod("a", annotations=VOLCANO, on="n1"))
    fed.drain()
    fed.wakes = 0
    fed.put({**volcano_group("train", 2), "status": {"phase": "Running", "running": 1}})
    assert fed.wakes == 0
    fed.put(pod("a", annotations=VOLCANO, on="n1", status={"phase": "Running", "startTime": "2026-01-01T00:10:00Z"}))
    events = fed.drain()
    assert [type(event) for event in events] == [PodBound]


def test_a_group_that_cannot_be_read_is_told_and_its_pods_wait() -> None:
    fed = FedWorld()
    fed.put(volcano_group("train", 2, networkTopology={"mode": "hard"}), pod("a", annotations=VOLCANO), pod("b"))
    (seen,) = fed.heard(GroupSeen)
    assert "no HyperNodes found" in seen.group.unreadable
    assert groups_of(fed) == {"default/a": "default/train", "default/b": ""}
    (trouble,) = fed.world.take_troubles()
    assert (trouble.kind.name, trouble.key) == ("PodGroup", "default/train")
    assert "no HyperNodes found" in trouble.message
    fed.put(volcano_group("train", 2))
    assert minima(fed) == {"default/train": 2}


def test_one_pod_that_names_no_part_of_its_group_does_not_keep_the_others() -> None:
    fed = FedWorld()
    words: dict[str, Any] = {"annotations": {"pod-group-name": "train"}}
    fed.put(kai_group("train", subGroups=[{"name": "worker", "minMember": 1}]))
    fed.put(pod("a", labels={"kai.scheduler/subgroup-name": "worker"}, **words))
    fed.put(pod("b", labels={"kai.scheduler/subgroup-name": "wroker"}, **words))
    assert len(fed.heard(GroupSeen)) == 1
    (trouble,) = fed.world.take_troubles()
    assert (trouble.kind.name, trouble.key) == ("Pod", "default/b")


def test_a_malformed_word_on_a_job_is_told_on_the_job_once_and_its_pods_wait_for_a_gang() -> None:
    fed = FedWorld()
    fed.put(job("j", 2, annotations={"shoal.dev/gang": "all"}), owned("j-0", "Job", "j"))
    (seen,) = fed.heard(GroupSeen)
    assert 'expected true, false or a number of pods, got "all"' in seen.group.unreadable
    assert groups_of(fed) == {"default/j-0": "default/j"}
    (trouble,) = fed.world.take_troubles()
    assert (trouble.kind.name, trouble.key) == ("Job", "default/j")
    assert 'expected true, false or a number of pods, got "all"' in trouble.message
    fed.put(owned("j-1", "Job", "j"))
    fed.drain()
    assert fed.world.take_troubles() == []
    fed.put(job("j", 2, annotations={"shoal.dev/gang": "true"}))
    assert minima(fed) == {"default/j": 2}


def test_pods_of_a_gang_are_tried_by_age() -> None:
    fed = FedWorld()
    fed.put(volcano_group("train", 2))
    fed.put(pod("young", annotations=VOLCANO, meta={"creationTimestamp": "2026-01-01T09:00:00Z"}))
    fed.put(pod("old", annotations=VOLCANO, meta={"creationTimestamp": "2026-01-01T08:00:00Z"}))
    by_order = sorted(fed.heard(PodArrived), key=lambda event: event.who.order)
    assert [event.key for event in by_order] == ["default/old", "default/young"]
