"""Kueue's loads are carried along whole, and a load becomes queues, nodes and arrivals as it says."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from build.queue_loads import HOST, RACK, load, racks, work
from shoal.engine.queues.topology_facts import TopologyRequest
from shoal.sim.queue_load import QueueLoad, Work, arrivals_of, published_loads, queues_of
from shoal.units.quantity import Quantity

COLLECTED = Path(__file__).parents[3] / "shared" / "data" / "kueue_loads.json"


def milli(amount: object) -> int:
    return Quantity.parse(str(amount)).milli_value()


@pytest.mark.parametrize(
    ("name", "workloads", "queues", "nodes"),
    [("baseline", 15_000, 30, 0), ("large-scale", 50_000, 1_000, 0), ("tas", 15_000, 30, 640)],
)
def test_a_published_load_has_its_size(name: str, workloads: int, queues: int, nodes: int) -> None:
    one = published_loads()[name]
    assert one.workloads == workloads
    world = queues_of(one)
    assert len(world.cluster_queues) == queues
    assert len(world.nodes) == nodes
    assert all(queue.closed is None for queue in world.cluster_queues.values())


@pytest.mark.skipif(not COLLECTED.is_file(), reason="the collected facts are not here")
@pytest.mark.parametrize("name", ["baseline", "large-scale", "tas"])
def test_the_published_loads_agree_with_the_collected_facts(name: str) -> None:
    ours, theirs = published_loads()[name], json.loads(COLLECTED.read_bytes())[name]
    (cohorts,) = theirs["load"]["cohorts"]
    (queues,) = cohorts["queuesSets"]
    assert (ours.cohorts, ours.queues) == (cohorts["count"], queues["count"])
    assert ours.quota.nominal_milli == milli(queues["nominalQuota"])
    assert ours.quota.borrowing_milli == milli(queues["borrowingLimit"])
    assert (ours.quota.reclaim, ours.quota.within) == (queues["reclaimWithinCohort"], queues["withinClusterQueue"])
    assert list(ours.work) == [work_of(each) for each in queues["workloadsSets"]]
    assert ours.bounds is not None
    assert ours.bounds.wait_ms == theirs["bounds"]["wlClassesMaxAvgTimeToAdmissionMs"]
    assert ours.bounds.use_percent == theirs["bounds"]["clusterQueueClassesMinUsage"]["cq"]
    assert ours.kueue is not None
    assert ours.kueue.wall_ms == theirs["means"]["wallMs"]


def work_of(theirs: dict[str, Any]) -> Work:
    (one,) = theirs["workloads"]
    return Work(
        one["className"],
        theirs["count"],
        theirs["creationIntervalMs"],
        one["runtimeMs"],
        one["priority"],
        milli(one["request"]),
        one.get("podCount", 1),
        one.get("tasConstraint", ""),
        one.get("tasLevel", ""),
        one.get("sliceSize", 0),
    )


def test_every_queue_gets_all_of_the_work_at_its_intervals() -> None:
    arrivals = arrivals_of(load(work("a", 3, every_ms=70), work("b", 2), cohorts=2, queues=2), seed=1)
    assert Counter(each.facts.queue for each in arrivals) == dict.fromkeys(
        (f"load/cohort-{c}-queue-00{q}" for c in range(2) for q in range(2)), 5
    )
    first = [each.at_ms for each in arrivals if "cohort-0-queue-000-a" in each.facts.key]
    assert first == [0, 70, 140]
    assert [each.at_ms for each in arrivals] == sorted(each.at_ms for each in arrivals)
    assert len({each.facts.uid for each in arrivals}) == len(arrivals)


def test_out_of_step_every_queue_starts_within_its_first_interval() -> None:
    arrivals = arrivals_of(load(work("a", 3, every_ms=500), cohorts=2, queues=5), seed=1, out_of_step=True)
    times: dict[str, list[int]] = {}
    for each in arrivals:
        times.setdefault(each.facts.queue, []).append(each.at_ms)
    assert all(0 <= first < 500 for first, *_ in times.values())
    assert all(later == [first + 500, first + 1_000] for first, *later in times.values())
    assert len({first for first, *_ in times.values()}) > 5


def test_nodes_stand_in_a_tree_of_domains() -> None:
    world = queues_of(structs.replace(load(work("a")), topology=racks(3, 2, 4)))
    assert Counter(node.labels[RACK] for node in world.nodes.values()) == {f"domain-0{rack}": 2 for rack in range(3)}
    assert all(node.labels[HOST] == name for name, node in world.nodes.items())
    assert all(node.allocatable["cpu"] == 4_000 for node in world.nodes.values())


@pytest.mark.parametrize(
    ("near", "requirement"),
    [
        ("", None),
        ("required", TopologyRequest(required=RACK)),
        ("preferred", TopologyRequest(preferred=RACK)),
        ("balanced", TopologyRequest(preferred=RACK, slice_level=HOST, slice_size=2, balanced=True)),
    ],
)
def test_pods_say_how_near_they_want_to_be(near: Any, requirement: TopologyRequest | None) -> None:
    one = structs.replace(work("a"), near=near, level=RACK, pods=4, slice=2 if near == "balanced" else 0)
    world: QueueLoad = structs.replace(load(one), topology=racks(1, 1, 4))
    (pod_set,) = arrivals_of(world, 0)[0].facts.pod_sets
    assert pod_set.count == 4
    assert pod_set.topology == requirement
