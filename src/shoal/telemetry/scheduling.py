"""Measures the scheduler, with kube-scheduler's metric names where it has one.

kube-scheduler tries one pod at a time; here a round decides about many. An attempt therefore is a pod that a round
placed or refused, and its duration the round's, shared among all that it decided about.
"""

from __future__ import annotations

from shoal.prometheus.families import exponential
from shoal.prometheus.registry import Registry

ATTEMPTS = exponential(0.001, 2, 15)
WAITS = exponential(0.01, 2, 20)
VICTIMS = exponential(1, 2, 7)
TRIES = exponential(1, 2, 5)
ROUNDS = exponential(0.0005, 2, 14)
MOST_TRIES = 15


class SchedulingMetrics:
    def __init__(self, registry: Registry) -> None:
        tried = ("result", "profile")
        self.attempts = registry.counter(
            "scheduler_schedule_attempts_total",
            "Attempts to schedule pods: scheduled, unschedulable, or error where the server refused a binding.",
            tried,
        )
        self.attempt_seconds = registry.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "How long an attempt took to decide, as a share of its round.",
            ATTEMPTS,
            tried,
        )
        self.waits = registry.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From the moment a pod was seen without closed gates until it was bound, by attempts.",
            WAITS,
            ("attempts",),
        )
        self.tries = registry.histogram(
            "scheduler_pod_scheduling_attempts", "How many attempts pods took that were bound.", TRIES
        )
        self.preemptions = registry.counter(
            "scheduler_preemption_attempts_total", "How many times pods were preempted for a pod or gang."
        )
        self.victims = registry.histogram(
            "scheduler_preemption_victims", "How many pods were preempted for one pod or gang.", VICTIMS
        )
        self.rounds = registry.counter("shoal_rounds_total", "Rounds of decisions.")
        self.round_seconds = registry.histogram("shoal_round_seconds", "How long a round took to decide.", ROUNDS)
        self.in_flight = registry.gauge("shoal_bindings_in_flight", "Bindings sent whose answer is not there yet.")
        self.rolled_back = registry.counter(
            "shoal_half_gangs_rolled_back_total", "Gangs left half bound whose bound pods were ended to start anew."
        )
        self.moves = registry.counter("shoal_moves_total", "Pods ended to start elsewhere so that others fit.")
