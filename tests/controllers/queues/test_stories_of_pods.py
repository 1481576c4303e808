"""What pods tell of their workload for the choice of who yields: its oldest save, and the budgets it draws on."""

from __future__ import annotations

from build.queues import admitted, cluster_queue, queues, workload
from shoal.controllers.queues.stories import Stories
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.events import BudgetSeen, Event, NodeFacts, NodeSeen, PodBound
from shoal.engine.groups import BudgetFacts
from shoal.engine.intake import Intake
from shoal.engine.queues.facts import BudgetUse
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Queues
from shoal.engine.who import Who

_ON = Settings(lost_work=True, respect_budgets=True)


def told(settings: Settings, *events: Event) -> tuple[Queues, Stories]:
    """Workload `w` of the pods whose names begin with it, after these events, at moment 1000."""
    cluster = Cluster()
    intake = Intake(cluster)
    found = queues(cluster_queue("a", cpu=8), settings=settings)
    facts = admitted(workload("w", "a", cpu=1), "a")
    found.hold(facts, 0.0)
    intake.apply(NodeSeen(NodeFacts("n1", {"cpu": 8000, "pods": 10})))
    stories = Stories(
        cluster, lambda _: [key for key in cluster.pods if key.startswith("default/w")], lambda _: facts.key
    )
    for event in events:
        intake.apply(event)
        stories.hear(event)
    stories.tell(found, 1000.0)
    return found, stories


def bound(name: str, **who: float) -> PodBound:
    return PodBound(f"default/{name}", Ask(), "n1", who=Who(**who))  # type: ignore[arg-type]


def test_the_oldest_save_of_a_gang_counts_and_who_never_saves_says_nothing() -> None:
    found, _ = told(_ON, bound("w0", since_s=100, saved_s=900), bound("w1", since_s=100, saved_s=700))
    assert found.held["default/w"].facts.saved_s == 700
    silent, _ = told(_ON, bound("w0", since_s=100))
    assert silent.held["default/w"].facts.saved_s is None


def test_who_says_how_often_it_saves_is_worked_out_anew_as_time_goes_by() -> None:
    found, stories = told(_ON, bound("w0", since_s=100, saves_every_s=400))
    assert found.held["default/w"].facts.saved_s == 900
    stories.tell(found, 1300.0)
    assert found.held["default/w"].facts.saved_s == 1300


def test_pods_that_are_up_draw_on_their_budgets() -> None:
    budget = BudgetFacts("pdb", "default", 1, frozenset({"default/w0", "default/w1", "default/other"}))
    found, _ = told(_ON, bound("w0"), bound("w1"), BudgetSeen(budget))
    facts = found.held["default/w"].facts
    assert facts.budgets == (BudgetUse("default/pdb", 2, 1),)
    assert facts.shielded


def test_nothing_is_worked_out_that_nobody_asked_for() -> None:
    found, _ = told(Settings(), bound("w0", since_s=100, saved_s=900))
    assert found.held["default/w"].facts.saved_s is None
