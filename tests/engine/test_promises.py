"""Room that others are leaving may be promised: such a pod is neither bound nor passed over."""

from __future__ import annotations

import pytest

from build.nodes import node
from build.pods import ask
from build.scenario import Scenario
from shoal.engine.cycle import cycle
from shoal.engine.events import PodStays
from shoal.engine.ledger import Ledger
from shoal.engine.plan import Nominate, Place
from shoal.engine.pod_identity import PodIdentity, PodLabels
from shoal.engine.steps.allocate import allocate
from shoal.engine.steps.preempt import preempt

ONE = ask().gpus(1)
TWO = ask().gpus(2)


def _two_leave_of_four() -> Scenario:
    world = Scenario(node("n1").gpus(4))
    world.bind("a", ONE, "n1", (0,)).bind("b", ONE, "n1", (1,))
    return world.bind("c", ONE, "n1", (2,), terminating=True).bind("d", ONE, "n1", (3,), terminating=True)


class TestAPromise:
    def test_is_given_when_a_pod_fits_only_after_others_have_left(self) -> None:
        plan = _two_leave_of_four().arrive("new", TWO).round()
        assert [(type(i), i.pod) for i in plan.nominated] == [(Nominate, "new")]
        assert plan.placed == []
        assert plan.refused == []

    def test_is_not_given_when_the_pod_fits_at_once(self) -> None:
        world = _two_leave_of_four().see(node("n2").gpus(2)).arrive("new", TWO)
        assert [(p.pod, p.node) for p in world.round().placed] == [("new", "n2")]

    def test_is_kept_when_the_others_have_left(self) -> None:
        world = _two_leave_of_four().arrive("new", TWO)
        world.round()
        world.go("c").go("d")
        plan = world.round()
        assert [(p.pod, p.node) for p in plan.placed] == [("new", "n1")]

    def test_is_not_taken_by_a_pod_that_comes_later(self) -> None:
        world = _two_leave_of_four().arrive("new", TWO)
        world.round()
        world.go("c").go("d").arrive("later", TWO)
        assert [p.pod for p in world.round().placed] == ["new"]

    def test_is_not_taken_by_an_older_pod_of_equal_priority_that_could_not_have_it_then(self) -> None:
        world = _two_leave_of_four().arrive("older", ask().gpus(3)).arrive("new", TWO)
        world.round()
        world.go("c").go("d").go("a")
        assert [p.pod for p in world.round().placed] == ["new"]

    def test_keeps_idle_room_it_counts_on_from_others(self) -> None:
        world = Scenario(node("n1").gpus(4))
        world.bind("c", TWO, "n1", (0, 1), terminating=True).arrive("new", ask().gpus(4))
        world.round()
        plan = world.arrive("later", TWO).round()
        assert plan.placed == []

    def test_leaves_the_rest_of_the_leaving_room_to_others(self) -> None:
        world = _two_leave_of_four().arrive("new", ONE).arrive("too", ONE)
        assert [i.pod for i in world.round().nominated] == ["new", "too"]

    def test_is_given_again_in_every_round_until_it_is_kept(self) -> None:
        world = _two_leave_of_four().arrive("new", TWO)
        world.round()
        assert [i.pod for i in world.round().nominated] == ["new"]

    def test_gives_way_to_a_pod_of_higher_priority(self) -> None:
        world = _two_leave_of_four().arrive("new", TWO)
        world.round()
        plan = world.arrive("boss", TWO, priority=10).round()
        assert [i.pod for i in plan.nominated] == ["boss"]

    def test_dies_with_the_node(self) -> None:
        world = _two_leave_of_four().arrive("new", TWO)
        world.round()
        world.lose("n1")
        assert world.waiting() == ["new"]

    def test_from_before_a_restart_is_tried_first(self) -> None:
        world = Scenario(node("n1").gpus(4), node("n2").gpus(2))
        world.arrive("new", TWO, nominated="n1")
        assert [(p.pod, p.node) for p in world.round().placed] == [("new", "n1")]


class TestATrial:
    def test_that_withdraws_promises_and_is_rolled_back_leaves_them(self) -> None:
        world = _two_leave_of_four().arrive("new", TWO)
        world.round()
        before = world.cluster.free.copy()
        ledger = Ledger(world.cluster)
        ledger.withdraw("new")
        assert world.waiting() == ["new"]
        ledger.rollback()
        assert (world.cluster.free == before).all()
        assert world.waiting() == []
        assert list(world.cluster.nominated) == ["new"]

    def test_that_tells_a_pod_to_leave_and_is_rolled_back_leaves_it_alone(self) -> None:
        world = Scenario(node("n1").gpus(1)).bind("a", ONE, "n1")
        ledger = Ledger(world.cluster)
        ledger.mark_terminating("a")
        assert list(world.cluster.terminating) == ["a"]
        ledger.rollback()
        assert not world.cluster.terminating
        assert not world.cluster.pods["a"].is_terminating

    def test_may_reinstate_one_of_the_pods_it_evicted(self) -> None:
        world = Scenario(node("n1").gpus(2)).bind("a", ONE, "n1", (0,)).bind("b", ONE, "n1", (1,))
        ledger = Ledger(world.cluster)
        held = world.cluster.pods["a"]
        ledger.evict("a")
        ledger.evict("b")
        ledger.reinstate("a", held)
        assert set(world.placed()) == {"a"}
        ledger.rollback()
        assert set(world.placed()) == {"a", "b"}
        assert world.devices_of("b") == (1,)


def test_a_gang_is_known_by_its_pods_before_its_object() -> None:
    who = PodIdentity(PodLabels("team"), group="team/train")
    world = Scenario(node("n1").gpus(2)).arrive("team/a", ONE, who=who)
    plan = world.round()
    assert [type(i) for i in plan.intentions if isinstance(i, Place)] == []
    assert [i.group for i in plan.refused_groups] == ["team/train"]


def test_a_promise_moves_when_its_node_takes_nobody_any_more() -> None:
    world = _two_leave_of_four().see(node("n2").gpus(2)).bind("e", TWO, "n2", terminating=True).arrive("new", TWO)
    first = world.round().nominated[0].node
    other = {"n1": "n2", "n2": "n1"}[first]
    world.see(node(first).gpus({"n1": 4, "n2": 2}[first]).cordoned())
    assert [i.node for i in world.round().nominated] == [other]


def test_a_promise_needs_the_cores_of_those_who_leave_as_well() -> None:
    world = Scenario(node("n1").gpus(2).cpu(8))
    world.bind("a", ask().gpus(1).cpu(4), "n1", (0,)).bind("b", ask().gpus(1).cpu(4), "n1", (1,), terminating=True)
    world.arrive("much", ask().gpus(1).cpu(5)).arrive("little", ask().gpus(1).cpu(4))
    assert [i.pod for i in world.round().nominated] == ["little"]


class TestAVictim:
    def test_that_reports_itself_once_more_still_leaves(self) -> None:
        world = _eviction()
        world.bind("victim", TWO, "n1")
        assert list(world.cluster.terminating) == ["victim"]
        assert [type(i) for i in world.round().intentions] == [Nominate]

    def test_that_the_world_does_not_end_stays(self) -> None:
        world = _eviction().apply(PodStays("victim"))
        assert not world.cluster.terminating
        assert not world.cluster.pods["victim"].is_terminating
        assert world.round().nominated == []
        assert world.waiting() == ["claimant"]

    @pytest.mark.parametrize("pod", ["claimant", "nobody"])
    def test_alone_can_stay(self, pod: str) -> None:
        world = _eviction().apply(PodStays(pod))
        assert list(world.cluster.terminating) == ["victim"]


def _eviction() -> Scenario:
    """A pod was told to leave, and what it leaves is promised to another."""
    world = Scenario(node("n1").gpus(2)).bind("victim", TWO, "n1").arrive("claimant", TWO, priority=1)
    cycle(world.cluster, world.placement, now_s=0.0, seed=0, steps=(allocate, preempt()))
    return world


def test_a_pod_that_was_promised_room_and_asks_for_more_asks_anew_at_its_old_place() -> None:
    world = _two_leave_of_four().arrive("new", TWO)
    world.round()
    world.arrive("later", TWO).arrive("new", ask().gpus(2).cpu(1))
    plan = world.round()
    assert [i.pod for i in plan.nominated] == ["new"]
    assert world.cluster.pods["new"].ask.request("cpu") == 1000


def test_the_same_news_of_a_promised_pod_changes_nothing() -> None:
    world = _two_leave_of_four().arrive("new", TWO)
    world.round()
    version = world.cluster.version
    world.arrive("new", TWO)
    assert world.cluster.version == version
