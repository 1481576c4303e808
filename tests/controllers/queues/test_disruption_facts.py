"""Facts that pods add to their Workload for the choice of victims: its oldest save, and the budgets it would use."""

from __future__ import annotations

from build.queues import admitted, cluster_queue, queues, workload
from shoal.controllers.queues.disruption_facts import DisruptionFacts
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.events import BudgetSeen, Event, NodeFacts, NodeSeen, PodBound
from shoal.engine.groups import BudgetFacts
from shoal.engine.intake import Intake
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.queues.facts import BudgetUse
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Queues

_ON = Settings(lost_work=True, respect_budgets=True)


def updated(settings: Settings, *events: Event) -> tuple[Queues, DisruptionFacts]:
    """The Workload `w`, which has the pods whose names begin with `w`, after these events at 1000 s."""
    cluster = Cluster()
    intake = Intake(cluster)
    found = queues(cluster_queue("a", cpu=8), settings=settings)
    facts = admitted(workload("w", "a", cpu=1), "a")
    found.hold(facts, 0.0)
    intake.apply(NodeSeen(NodeFacts("n1", {"cpu": 8000, "pods": 10})))
    disruption_facts = DisruptionFacts(
        cluster, lambda _: [key for key in cluster.pods if key.startswith("default/w")], lambda _: facts.key
    )
    for event in events:
        intake.apply(event)
        disruption_facts.handle(event)
    disruption_facts.update(found, 1000.0)
    return found, disruption_facts


def bound(name: str, **who: float) -> PodBound:
    return PodBound(f"default/{name}", Ask(), "n1", who=PodIdentity(**who))  # type: ignore[arg-type]


def test_the_oldest_save_of_a_gang_counts_and_without_saves_there_is_none() -> None:
    found, _ = updated(_ON, bound("w0", since_s=100, saved_s=900), bound("w1", since_s=100, saved_s=700))
    assert found.held["default/w"].facts.saved_s == 700
    silent, _ = updated(_ON, bound("w0", since_s=100))
    assert silent.held["default/w"].facts.saved_s is None


def test_the_save_of_a_workload_with_a_save_interval_moves_with_time() -> None:
    found, disruption_facts = updated(_ON, bound("w0", since_s=100, saves_every_s=400))
    assert found.held["default/w"].facts.saved_s == 900
    disruption_facts.update(found, 1300.0)
    assert found.held["default/w"].facts.saved_s == 1300


def test_running_pods_use_their_budgets() -> None:
    budget = BudgetFacts("pdb", "default", 1, frozenset({"default/w0", "default/w1", "default/other"}))
    found, _ = updated(_ON, bound("w0"), bound("w1"), BudgetSeen(budget))
    facts = found.held["default/w"].facts
    assert facts.budgets == (BudgetUse("default/pdb", 2, 1),)
    assert facts.shielded


def test_nothing_is_computed_that_the_configuration_does_not_use() -> None:
    found, _ = updated(Settings(), bound("w0", since_s=100, saved_s=900))
    assert found.held["default/w"].facts.saved_s is None
