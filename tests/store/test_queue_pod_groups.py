"""Pod groups of every ecosystem among manifests: one workload for the pods of a group, decided as on a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from build.manifests import Object, pod, thing
from build.queue_manifests import IN_Q, owned_by, queues, sizes, workload, workloads, world
from build.queued_groups import STYLES, group_object, member_object
from shoal.sim.queued_world import kueue_of

_ROLES: Object = {"minTaskMember": {"master": 1, "worker": 1}}
OTHERS = [name for name in STYLES if name != "kueue"]


def members(style: str, *names: str, least: int = 2, group: str = "g", **more: Any) -> list[Object]:
    """Pods of a group in namespace t."""
    found = [member_object(style, group, name, least, **{"queue": "q", **more}) for name in names]
    for each in found:
        each["metadata"]["namespace"] = "t"
    return found


def declared(style: str, least: int = 2, **spec: Any) -> list[Object]:
    """The object of the group, where the style has one."""
    if STYLES[style].kind is None:
        return []
    made = group_object(style, "g", least, **spec)
    made["metadata"]["namespace"] = "t"
    return [made]


@pytest.mark.parametrize("style", STYLES)
def test_the_pods_of_a_group_are_one_workload(style: str) -> None:
    found = world(*queues(), *declared(style, 3), *members(style, "a", "b", "c", least=3))
    (facts,) = found.workloads
    assert (sizes(facts), list(found.pods.values())) == ({"main": 3}, [("t/a", "t/b", "t/c")])
    assert facts.key.startswith("t/g")
    assert [each.min_count for each in facts.pod_sets] == [None]


@pytest.mark.parametrize("style", OTHERS)
def test_pods_beyond_the_minimum_are_elastic(style: str) -> None:
    (facts,) = world(*queues(), *declared(style), *members(style, "a", "b", "c", "d")).workloads
    assert [(each.count, each.min_count) for each in facts.pod_sets] == [(4, 2)]


@pytest.mark.parametrize("style", OTHERS)
def test_a_group_without_enough_pods_waits_with_the_numbers(style: str) -> None:
    found = world(*queues(), *declared(style, 3), *members(style, "a", "b", least=3))
    (facts,) = found.workloads
    name = "t/g/workers" if style == "kubernetes-workload" else "t/g"
    assert facts.fault == f"pod group {name} has 2 of the 3 pods that it needs: it is queued once 1 more exists"
    assert any(facts.fault in line for line in found.warnings)
    assert not kueue_of(found, 0.0).cycle(1.0).admitted


@pytest.mark.parametrize("style", [name for name in OTHERS if name != "labels"])
def test_pods_of_a_group_that_is_not_among_the_manifests_wait(style: str) -> None:
    (facts,) = world(*queues(), *members(style, "a", "b")).workloads
    assert facts.fault.endswith("not found: its pods are queued once it exists")


def test_a_group_whose_pods_name_different_queues_is_refused() -> None:
    pods = [*members("volcano", "a"), *members("volcano", "b", queue="other")]
    (facts,) = world(*queues(), *declared("volcano"), *pods).workloads
    assert facts.fault == (
        "pods a and b of pod group t/g name different queues, q and other: give all pods of the group the same label "
        "kueue.x-k8s.io/queue-name"
    )


@pytest.mark.parametrize(("style", "spec"), [("volcano", {}), ("kubernetes", {"schedulingPolicy": {"basic": {}}})])
def test_pods_that_no_minimum_ties_together_are_workloads_of_their_own(style: str, spec: Object) -> None:
    found = workloads(*declared(style, 1, **spec), *members(style, "a", "b"))
    assert sorted(found) == ["t/pod-a", "t/pod-b"]


def test_pods_of_different_shapes_are_pod_sets_and_those_that_the_gang_needs_are_required() -> None:
    pods = [
        *members("volcano", "w0", "w1", "w2", annotations={"volcano.sh/task-spec": "worker"}),
        *members("volcano", "m", cpu="4", annotations={"volcano.sh/task-spec": "master"}),
    ]
    (facts,) = world(*queues(), *declared("volcano", 2, **_ROLES), *pods).workloads
    assert sorted((each.count, each.min_count) for each in facts.pod_sets) == [(1, None), (3, 1)]


def test_pods_that_a_role_needs_come_before_elastic_ones() -> None:
    pods = [
        *members("volcano", "a0", "a1", "a2", annotations={"volcano.sh/task-spec": "worker"}),
        *members("volcano", "z", annotations={"volcano.sh/task-spec": "master"}),
    ]
    found = world(*queues(), *declared("volcano", 2, **_ROLES), *pods)
    assert found.pods == {"t/g": ("t/a0", "t/z", "t/a1", "t/a2")}


def test_pods_that_succeeded_count_for_the_minimum() -> None:
    (done,) = members("volcano", "a")
    done["status"] = {"phase": "Succeeded"}
    (facts,) = world(*queues(), *declared("volcano", 3), done, *members("volcano", "b", "c", least=3)).workloads
    assert (facts.fault, sizes(facts)) == ("", {"main": 2})


def test_a_group_that_runs_without_an_admission_is_left_as_it_is() -> None:
    found = world(*queues(), *declared("volcano"), *members("volcano", "a", "b", nodeName="n"))
    assert found.workloads == []
    assert "pod group t/g runs without an admission" in found.warnings[0]


def test_the_workload_of_a_group_that_is_among_the_manifests_is_its_own() -> None:
    found = world(*queues(), *declared("volcano"), *members("volcano", "a", "b"), workload("t/g"))
    assert found.pods == {"t/g": ("t/a", "t/b")}


def test_a_job_with_a_queue_is_one_workload_although_its_pods_are_in_a_group() -> None:
    task = {"name": "w", "replicas": 2, "template": pod("t/x", labels=IN_Q, limits={"cpu": 1})}
    train = thing("batch.volcano.sh/v1alpha1", "Job", "t/train", spec={"tasks": [task]})
    train["metadata"]["labels"] = dict(IN_Q)
    pods = members("volcano", "a", "b")
    for each in pods:
        each["metadata"] |= owned_by("Job", "train")
    found = workloads(*declared("volcano"), train, *pods)
    assert sorted(found) == ["t/job-train"]


def test_a_stateful_set_with_a_queue_is_one_workload_although_its_pods_are_in_a_group() -> None:
    template = {
        "metadata": {"labels": {"app": "db"}, "annotations": {"scheduling.k8s.io/group-name": "g"}},
        "spec": pod("t/x", limits={"cpu": 1})["spec"],
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "db"}}, "template": template}
    made = thing("apps/v1", "StatefulSet", "t/db", spec=spec)
    made["metadata"]["labels"] = dict(IN_Q)
    assert sorted(workloads(*declared("volcano"), made)) == ["t/statefulset-db"]
