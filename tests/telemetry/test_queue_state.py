"""What is told of queues and cohorts at one moment, from the desk's own facts."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from shoal.api.selectors import Selector
from shoal.engine.queues.decisions import Decisions
from shoal.engine.queues.facts import (
    ClusterQueueFacts,
    CohortFacts,
    FlavorFacts,
    FlavorQuotas,
    LocalQueueFacts,
    PodSet,
    PodSetAdmission,
    Quota,
    QuotaAssignment,
    ResourceGroup,
    WorkloadFacts,
)
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Queues
from shoal.prometheus.exposition import text_of
from shoal.prometheus.registry import Registry
from shoal.store.watched.queue_changes import Mark, WorkloadView
from shoal.telemetry.queue_state import QueueLevels
from shoal.telemetry.queues import QueueMetrics, WorkloadTransition

ROLE = 'replica_role="leader"'
CQ = 'cluster_queue="vision"'


def quotas(cpu: int) -> tuple[ResourceGroup, ...]:
    return (ResourceGroup(("cpu",), (FlavorQuotas("any", {"cpu": Quota(cpu)}),)),)


def work(name: str, cpu: int, *, cores: int = 0, count: int = 1) -> WorkloadFacts:
    """With `cores` it is admitted."""
    held = PodSetAdmission("main", count, {"cpu": "any"}, {"cpu": cores})
    return WorkloadFacts(
        f"team/{name}",
        queue="team/gpus",
        pod_sets=(PodSet("main", count, requests={"cpu": cpu}),),
        admission=QuotaAssignment("vision", (held,)) if cores else None,
        admitted=bool(cores),
    )


class World:
    """A desk that decides about one cluster queue below two cohorts, and what is read of it."""

    def __init__(self) -> None:
        self.kueue = Kueue(Queues(Settings(fair_sharing=True, usage_half_life_s=100.0)))
        self.seen: list[WorkloadView] = []
        self.now_s = 0.0
        facts = ClusterQueueFacts("vision", "lab", quotas(2000), namespaces=Selector.EVERYTHING, by_usage=True)
        for fact in (
            FlavorFacts("any"),
            CohortFacts("all", groups=quotas(6000)),
            CohortFacts("lab", parent="all"),
            facts,
            LocalQueueFacts("team/gpus", "vision"),
            LocalQueueFacts("team/lost", "nobody"),
        ):
            self.kueue.queues.put(fact)
        self.kueue.queues.namespaces["team"] = {}
        self.kueue.queues.refresh()
        registry = Registry()
        self.metrics = QueueMetrics(registry, "leader")
        self.metrics.follow(QueueLevels(self, self, lambda: self.now_s))
        self._registry = registry

    def measure(self, around: Callable[[Callable[[], Decisions]], Decisions]) -> None:
        raise AssertionError("nobody asks for it here")

    def views(self) -> list[WorkloadView]:
        return self.seen

    def sees(self, facts: WorkloadFacts) -> None:
        self.kueue.put_workload(facts, self.now_s)
        self.seen.append(WorkloadView(facts.key, "u", 1, 1, facts, queue=facts.queue))

    def __getitem__(self, sample: str) -> float:
        found = dict(line.rsplit(" ", 1) for line in text_of(self._registry.read()).decode().splitlines())
        return float(found[f"kueue_{sample}"])


def test_a_cohort_tells_what_it_has_and_what_is_reserved_below_it() -> None:
    world = World()
    world.sees(work("runs", 3000, cores=3000))
    for cohort, quota in (("lab", 2), ("all", 8)):
        labels = f'cohort="{cohort}",flavor="any",resource="cpu",{ROLE}'
        assert world[f"cohort_subtree_quota{{{labels}}}"] == quota
        assert world[f"cohort_subtree_resource_reservations{{{labels}}}"] == 3
        assert world[f'cohort_subtree_admitted_active_workloads{{cohort="{cohort}",{ROLE}}}'] == 1
    # One core beyond its own two, of the eight that could be lent.
    assert world[f'cohort_weighted_share{{cohort="lab",{ROLE}}}'] == math.ceil(1000 / 8)
    assert world[f'cohort_weighted_share{{cohort="all",{ROLE}}}'] == 0


def test_queues_and_cohorts_name_those_above_them() -> None:
    world = World()
    assert world[f'cluster_queue_info{{{CQ},parent_cohort="lab",root_cohort="all",{ROLE}}}'] == 1
    assert world[f'cohort_info{{cohort="lab",parent_cohort="all",root_cohort="all",{ROLE}}}'] == 1
    assert world[f'cohort_info{{cohort="all",parent_cohort="",root_cohort="all",{ROLE}}}'] == 1


def test_an_admission_counts_for_all_cohorts_above() -> None:
    world = World()
    world.metrics.count(WorkloadTransition("admitted", "vision", "high"))
    for cohort in ("lab", "all"):
        labels = f'cohort="{cohort}",priority_class="high",{ROLE}'
        assert world[f"cohort_subtree_admitted_workloads_total{{{labels}}}"] == 1


def test_what_those_who_wait_ask_for_is_summed() -> None:
    world = World()
    world.sees(work("runs", 1000, cores=1000))
    world.sees(work("waits", 1500, count=4))
    world.sees(work("waits-too", 500))
    assert world[f'cluster_queue_resource_pending{{{CQ},resource="cpu",{ROLE}}}'] == 6.5
    with pytest.raises(KeyError):
        # No quota counts pods.
        world[f'cluster_queue_resource_pending{{{CQ},resource="pods",{ROLE}}}']


def test_who_is_not_admitted_is_counted_by_why_also_where_the_queue_is_not_there() -> None:
    world = World()
    waits = Mark(False, "WaitingForQuota")
    checked = {"QuotaReserved": Mark(True), "Admitted": Mark(False, "UnsatisfiedAdmissionChecks")}
    for name, queue, marks in (
        ("new", "team/gpus", {}),
        ("waits", "team/gpus", {"QuotaReserved": waits}),
        ("waits-too", "team/gpus", {"QuotaReserved": waits}),
        ("checked", "team/gpus", checked),
        ("runs", "team/gpus", {"QuotaReserved": Mark(True), "Admitted": Mark(True)}),
        ("typo", "team/gpu", {"QuotaReserved": Mark(False, "Misconfigured")}),
    ):
        world.seen.append(WorkloadView(f"team/{name}", "u", 1, 1, queue=queue, marks=marks))
    world.seen.append(WorkloadView("team/done", "u", 1, 1, queue="team/gpus", is_finished=True))
    for queue, reason, cause, count in (
        ("vision", "NoReservation", "PendingEvaluation", 1),
        ("vision", "NoReservation", "WaitingForQuota", 2),
        ("vision", "UnsatisfiedAdmissionChecks", "ChecksNotReady", 1),
        ("", "NoReservation", "Misconfigured", 1),
    ):
        why = f'reason="{reason}",underlying_cause="{cause}"'
        assert world[f'unadmitted_workloads{{cluster_queue="{queue}",{why},{ROLE}}}'] == count
        name = "gpus" if queue else "gpu"
        own = f'name="{name}",namespace="team",cluster_queue="{queue}",{why},{ROLE}'
        assert world[f"local_queue_unadmitted_workloads{{{own}}}"] == count


def test_work_that_is_done_and_still_there_is_counted() -> None:
    world = World()
    world.seen.append(WorkloadView("team/done", "u", 1, 1, queue="team/gpus", is_finished=True))
    assert world[f"finished_workloads{{{CQ},{ROLE}}}"] == 1
    assert world[f'local_queue_finished_workloads{{name="gpus",namespace="team",{ROLE}}}'] == 1


def test_a_local_queue_is_closed_while_its_cluster_queue_is_not_there() -> None:
    world = World()
    for name, is_open in (("gpus", 1), ("lost", 0)):
        own = f'name="{name}",namespace="team"'
        assert world[f'local_queue_status{{{own},active="True",{ROLE}}}'] == is_open
        assert world[f'local_queue_status{{{own},active="False",{ROLE}}}'] == 1 - is_open


def test_looking_at_use_moves_nothing() -> None:
    looked, left = World(), World()
    for world in (looked, left):
        world.sees(work("runs", 1000, cores=1000))
    sample = f'local_queue_admission_fair_sharing_usage{{name="gpus",namespace="team",{ROLE}}}'
    for looked.now_s in (7.0, 31.0, 100.0):
        read = looked[sample]
    assert read == 0.5
    assert looked.kueue.usage.of("team/gpus", 130.0) == left.kueue.usage.of("team/gpus", 130.0)


def test_skips_of_the_last_cycle_are_told_and_forgotten() -> None:
    world = World()
    waits = work("waits", 1000)
    world.sees(waits)
    decided = world.kueue.cycle(0.0)
    sample = f"admission_cycle_preemption_skips{{{CQ},{ROLE}}}"
    decided.skips["vision"] = 2
    world.metrics.around(lambda: decided)
    assert world[sample] == 2
    decided.skips.clear()
    world.metrics.around(lambda: decided)
    assert world[sample] == 0


def test_a_cycle_that_found_nobody_is_no_attempt() -> None:
    world = World()
    world.metrics.around(lambda: world.kueue.cycle(0.0))
    world.sees(work("waits", 1000))
    world.metrics.around(lambda: world.kueue.cycle(1.0))
    assert world[f'admission_attempts_total{{result="success",{ROLE}}}'] == 1
    assert world[f'admission_attempt_duration_seconds_count{{result="success",{ROLE}}}'] == 1
