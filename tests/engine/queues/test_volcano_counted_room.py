"""The count of room for equal pods follows the pods that leave, and is never too low."""

from __future__ import annotations

from collections.abc import Mapping

from build.volcano_worlds import World, queue
from shoal.engine.asks import Ask
from shoal.engine.charges import Charge
from shoal.engine.queues.disciplines.volcano.counted_room import CountedRoom
from shoal.engine.queues.disciplines.volcano.jobs import PodOfJob


def room(world: World, wanted: Mapping[str, int]) -> CountedRoom:
    """For so many of the requests of these waiting pods."""
    cluster = world.cluster
    counts = {cluster.pending[pod].charge: count for pod, count in wanted.items()}
    return CountedRoom(cluster, counts, cluster.all_rows(), lambda pod: cluster.pods[pod.key].row)


def running(world: World, *keys: str) -> list[PodOfJob]:
    return [PodOfJob(key, "ns/runs", {}, world.cluster.pods[key].charge) for key in keys]


def full() -> World:
    """Two nodes of 4 cores, each with pods of 3 cores and 1 core."""
    world = World([queue("q")], {"n1": {"cpu": 4}, "n2": {"cpu": 4}})
    world.job("runs", "q", "n1:3", "n1:1", "n2:3", "n2:1")
    return world.job("waits", "q", ":4", ":1")


def test_pods_on_different_nodes_do_not_make_room_for_one_pod() -> None:
    world = full()
    found = room(world, {"waits-0": 1})
    found.leave(running(world, "runs-0", "runs-3"))
    assert not found.suffices
    found.leave(running(world, "runs-1"))
    assert found.suffices


def test_a_pod_that_stays_after_all_takes_its_room_back() -> None:
    world = full()
    found = room(world, {"waits-0": 1})
    found.leave(running(world, "runs-0", "runs-1"))
    found.stay(running(world, "runs-1"))
    assert not found.suffices
    found.stay(running(world, "runs-0"))
    found.leave(running(world, "runs-0", "runs-1"))
    assert found.suffices


def test_there_must_be_room_for_each_request() -> None:
    world = full()
    found = room(world, {"waits-0": 1, "waits-1": 5})
    found.leave(running(world, "runs-0", "runs-1"))
    assert not found.suffices, "four pods of one core have room, not five"
    found.leave(running(world, "runs-3"))
    assert found.suffices


def test_nodes_that_do_not_suit_a_request_have_no_room_for_it() -> None:
    world = full()
    charge = world.cluster.pending["waits-0"].charge
    named = Charge(Ask(requests=charge.ask.requests, node_name="n2"), charge.need, charge.taken)
    found = CountedRoom(
        world.cluster, {named: 1}, world.cluster.all_rows(), lambda pod: world.cluster.pods[pod.key].row
    )
    found.leave(running(world, "runs-0", "runs-1"))
    assert not found.suffices
    found.leave(running(world, "runs-2", "runs-3"))
    assert found.suffices


def test_without_wanted_pods_there_is_room() -> None:
    assert room(full(), {}).suffices
