"""Rounds on a world without surprises: what is decided happens, what ends is gone, and quiet is quiet."""

from __future__ import annotations

from build.nodes import node
from build.pods import ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.events import NodeSeen, PodArrived, PodBound
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Evict, Move, Nominate
from shoal.engine.pod_mix import PodMix
from shoal.engine.profile import profile_named
from shoal.sim.rounds import Rounds


def world(*events: PodArrived | PodBound) -> Intake:
    intake = Intake(Cluster())
    for name in ("n", "m"):
        intake.apply(NodeSeen(node(name).gpus(2).facts()))
    for event in events:
        intake.apply(event)
    return intake


def rounds(intake: Intake, *steps: Step, keep_terminating: bool = False, recreate: bool = False) -> Rounds:
    placement = Placement(intake.cluster, profile_named("Shoal", intake.cluster, PodMix()))
    return Rounds(
        intake, placement, steps=steps or None, keep_terminating=keep_terminating, recreate=recreate, now_s=100.0
    )


def arrived(name: str, gpus: int) -> PodArrived:
    return PodArrived(name, ask().gpus(gpus).made())


def bound(name: str, gpus: int, on: str, *, terminating: bool = False) -> PodBound:
    return PodBound(name, ask().gpus(gpus).made(), on, terminating=terminating)


def evicting() -> Step:
    def step(round_: CycleState) -> None:
        if "a" in round_.cluster.pods and "a" not in round_.cluster.terminating and "b" in round_.cluster.pending:
            round_.ledger.mark_terminating("a")
            round_.intentions.append(Evict("a", "b"))

    return step


def test_what_is_placed_runs_and_the_next_round_is_quiet() -> None:
    life = rounds(world(arrived("a", 2)))
    first, second = life.run()
    assert ([each.pod for each in first.placed], first.is_quiet) == (["a"], False)
    assert second.is_quiet
    assert life.cluster.pods["a"].is_bound


def test_five_more_rounds_after_quiet_are_quiet() -> None:
    life = rounds(world(arrived("a", 2), arrived("b", 2), arrived("c", 1), bound("d", 1, "n", terminating=True)))
    life.run()
    assert all(life.round().is_quiet for _ in range(5))


def test_what_was_ending_is_gone_after_the_round() -> None:
    life = rounds(world(bound("a", 2, "n", terminating=True), bound("x", 2, "m"), arrived("b", 2)))
    first, second, third = life.run()
    assert [each.pod for each in first.nominated] == ["b"]
    assert (first.ended, first.is_quiet) == (["a"], False)
    assert [each.pod for each in second.placed] == ["b"]
    assert third.is_quiet


def test_a_promise_that_only_repeats_itself_is_quiet() -> None:
    life = rounds(
        world(bound("a", 2, "n", terminating=True), bound("x", 2, "m"), arrived("b", 2)), keep_terminating=True
    )
    first, second = life.run()
    assert not first.is_quiet
    assert second.is_quiet
    assert second.nominated == [Nominate("b", "n", first.nominated[0].grant)]


def test_an_evicted_pod_is_gone_and_stays_away() -> None:
    life = rounds(world(bound("a", 2, "n"), bound("x", 2, "m"), arrived("b", 2)), evicting())
    first = life.round()
    assert [each.pod for each in first.evicted] == ["a"]
    assert first.ended == ["a"]
    assert "a" not in life.cluster.pods
    assert "a" not in life.cluster.pending


def test_an_evicted_pod_comes_back_where_somebody_makes_it_anew() -> None:
    life = rounds(world(bound("a", 2, "n"), bound("x", 2, "m"), arrived("b", 2)), evicting(), recreate=True)
    life.round()
    assert "a" in life.cluster.pending


def test_an_evicted_pod_that_is_kept_goes_on_holding_what_it_holds() -> None:
    life = rounds(world(bound("a", 2, "n"), bound("x", 2, "m"), arrived("b", 2)), evicting(), keep_terminating=True)
    life.run()
    assert list(life.cluster.terminating) == ["a"]
    assert life.cluster.pods["a"].is_terminating


def test_a_moved_pod_comes_back_with_its_new_place_promised() -> None:
    def move(round_: CycleState) -> None:
        if "a" in round_.cluster.pods:
            round_.ledger.mark_terminating("a")
            round_.intentions.append(Move("a", "n", "m", None, "b"))

    life = rounds(world(bound("a", 2, "n")), move)
    first = life.round()
    assert [each.pod for each in first.moved] == ["a"]
    assert life.cluster.pending["a"].nominated == "m"


def test_no_more_rounds_than_asked_for() -> None:
    def restless(round_: CycleState) -> None:
        round_.intentions.append(Evict("ghost", "b"))

    assert len(rounds(world(), restless).run(7)) == 7
