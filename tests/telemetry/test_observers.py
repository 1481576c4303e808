"""Rounds, bindings and what they come to, as a scheduler's dashboards show them."""

from __future__ import annotations

from shoal.engine.plan import Evict, Move, Place, Plan, Refuse, RefuseGroup
from shoal.engine.reasons import Code
from shoal.prometheus.exposition import text_of
from shoal.prometheus.registry import Registry
from shoal.telemetry.observers import SchedulingObserver
from shoal.telemetry.scheduling import SchedulingMetrics


class Told:
    """An observer, the time it lives in, and what is read of it."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.now_s = 0.0
        gangs = {"g": ["x", "y"]}
        self.observer = SchedulingObserver(
            SchedulingMetrics(self.registry), lambda _: "shoal", gangs.__getitem__, lambda: self.now_s
        )

    def round(self, *intentions: Place | Evict | Move | Refuse | RefuseGroup, lasts_s: float = 0.0) -> None:
        self.observer.outcomes()
        self.now_s += lasts_s
        self.observer.carry_out(Plan(0.0, 0, intentions))

    def __getitem__(self, sample: str) -> float:
        found = dict(line.rsplit(" ", 1) for line in text_of(self.registry.read()).decode().splitlines())
        return float(found[sample])


def test_a_round_lasts_from_its_question_to_its_plan() -> None:
    told = Told()
    told.round(lasts_s=0.25)
    told.round()
    assert (told["shoal_rounds_total"], told["shoal_round_seconds_sum"]) == (2, 0.25)


def test_a_pod_that_was_refused_twice_is_bound_with_its_third_attempt() -> None:
    told = Told()
    told.observer.waits("a", 100.0)
    told.round(Refuse("a", Code.NOWHERE))
    told.round(Refuse("a", Code.NOWHERE))
    assert told.observer.refused == {"a"}
    told.round(Place("a", "n", None))
    told.observer.binding()
    assert told["shoal_bindings_in_flight"] == 1
    told.observer.bound("a", 100.5)
    assert told["shoal_bindings_in_flight"] == 0
    assert told['scheduler_schedule_attempts_total{result="unschedulable",profile="shoal"}'] == 2
    assert told['scheduler_schedule_attempts_total{result="scheduled",profile="shoal"}'] == 1
    assert told['scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="3"}'] == 0.5
    assert told["scheduler_pod_scheduling_attempts_sum"] == 3
    assert not told.observer.refused


def test_a_round_is_shared_among_all_that_it_decided_about() -> None:
    told = Told()
    told.round(Place("a", "n", None), Place("b", "n", None), Refuse("c", Code.NOWHERE), lasts_s=0.3)
    name = "scheduler_scheduling_attempt_duration_seconds"
    assert told[f'{name}_count{{result="scheduled",profile="shoal"}}'] == 2
    assert round(told[f'{name}_sum{{result="scheduled",profile="shoal"}}'], 6) == 0.2
    assert round(told[f'{name}_sum{{result="unschedulable",profile="shoal"}}'], 6) == 0.1


def test_a_gang_that_waits_is_an_attempt_of_each_of_its_pods() -> None:
    told = Told()
    told.round(RefuseGroup("g", Code.NOWHERE))
    assert told['scheduler_schedule_attempts_total{result="unschedulable",profile="shoal"}'] == 2
    assert told.observer.refused == {"x", "y"}


def test_victims_are_counted_by_whom_they_yield_to() -> None:
    told = Told()
    told.round(Evict("a", "big"), Evict("b", "big"), Evict("c", "small"), Move("d", "n", "m", None, "small"))
    assert told["scheduler_preemption_attempts_total"] == 2
    assert told["scheduler_preemption_victims_sum"] == 3
    assert told['scheduler_preemption_victims_bucket{le="1"}'] == 1
    assert told["shoal_moves_total"] == 1


def test_a_binding_that_is_refused_is_an_error_and_one_that_is_unknown_is_not() -> None:
    told = Told()
    for is_refused in (True, False):
        told.observer.binding()
        told.observer.not_bound("a", is_refused=is_refused)
    assert told["shoal_bindings_in_flight"] == 0
    assert told['scheduler_schedule_attempts_total{result="error",profile="shoal"}'] == 1


def test_who_tried_very_often_is_counted_with_others() -> None:
    told = Told()
    told.observer.waits("a", 0.0)
    for _ in range(20):
        told.round(Refuse("a", Code.NOWHERE))
    told.observer.binding()
    told.observer.bound("a", 1.0)
    assert told['scheduler_pod_scheduling_sli_duration_seconds_count{attempts="15+"}'] == 1
