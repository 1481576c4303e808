"""Nodes as topology placement sees them: what is taken by others, and what an admission already accounts for."""

from __future__ import annotations

from build.manifests import Object, node, pod
from build.queue_manifests import admission, owned_by, pod_set, queues, workload, world
from shoal.engine.queues.topology_facts import QueueNode

OWNER = owned_by("Job", "train")
ON_N = {
    "levels": ["kubernetes.io/hostname"],
    "slices": [{"domainCount": 1, "valuesPerLevel": [{"universal": "n"}], "podCounts": {"universal": 1}}],
}


def the_node(*objects: Object) -> QueueNode:
    found = world(*queues(), node("n", labels={"rack": "r"}), *objects)
    (only,) = (fact for fact in found.facts if isinstance(fact, QueueNode))
    return only


def test_a_node_has_its_own_name_as_label_and_room_for_pods() -> None:
    found = the_node()
    assert found.labels == {"kubernetes.io/hostname": "n", "rack": "r"}
    assert found.allocatable["cpu"] == 64_000
    assert found.allocatable["pods"] == 110
    assert found.taken == {}


def test_pods_without_a_queue_take_room_and_a_slot_each() -> None:
    running = [pod(f"x/{name}", on="n", limits={"cpu": 2, "memory": "1Gi"}) for name in "ab"]
    assert the_node(*running, pod("x/waits", limits={"cpu": 9})).taken == {"cpu": 4000, "memory": 2**31, "pods": 2}


def test_a_pod_that_ended_takes_nothing() -> None:
    assert the_node(pod("x/a", on="n", limits={"cpu": 2}, status={"phase": "Succeeded"})).taken == {}


def test_pods_that_an_admission_places_are_not_counted_twice() -> None:
    running = pod("t/train-0", on="n", limits={"cpu": 1}, meta=OWNER)
    placed = workload(status={"admission": admission(1, 1, ON_N)}, meta=OWNER)
    assert the_node(running, placed).taken == {}
    unplaced = workload(status={"admission": admission()}, meta=OWNER)
    assert the_node(running, unplaced).taken == {"cpu": 1000, "pods": 1}


def test_of_several_pod_sets_only_the_placed_ones_are_accounted_for() -> None:
    status: Object = {"admission": admission(1, 1, ON_N)}
    status["admission"]["podSetAssignments"].append(
        {"name": "other", "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": 1}, "count": 1}
    )
    holds = workload(status=status, meta=OWNER, podSets=[pod_set(), pod_set(name="other")])
    labels = {"kueue.x-k8s.io/podset": "other"}
    main = pod("t/a", on="n", limits={"cpu": 1}, labels={"kueue.x-k8s.io/podset": "main"}, meta=OWNER)
    other = pod("t/b", on="n", limits={"cpu": 3}, labels=labels, meta=OWNER)
    assert the_node(main, other, holds).taken == {"cpu": 3000, "pods": 1}


def test_a_node_in_trouble_says_so() -> None:
    conditions = [{"type": "Ready", "status": "False"}]
    ill = node("n", spec={"unschedulable": True})
    ill["status"]["conditions"] = conditions
    (found,) = (fact for fact in world(*queues(), ill).facts if isinstance(fact, QueueNode))
    assert (found.ready, found.unschedulable) == (False, True)
