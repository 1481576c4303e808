"""Quota and placement together: what has quota and no place is not admitted, and nothing is left of the trial."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from build.nodes import NodeBuilder, node
from build.odd_faults import OddError, odd
from build.pods import ask
from build.queues import admitted, cluster_queue, flavor, pod_set, queues, quotas, workload
from build.snapshot import facts_by_name
from shoal.engine.cluster import Cluster
from shoal.engine.events import NodeSeen, PodArrived, PodBound, PodGone
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.pod_mix import PodMix
from shoal.engine.profile import profile_named
from shoal.engine.queues.facts import PreemptionRules, QuotaAssignment, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.proof import Proof, Proven
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact
from shoal.engine.queues.topology_facts import QueueNode

LOWER = PreemptionRules(within="LowerPriority")


class World:
    """Queues over nodes; every pod of a workload asks for as many GPUs as its pod set says, on nodes of its flavor."""

    def __init__(
        self, nodes: list[NodeBuilder], *facts: Fact | WorkloadFacts, settings: Settings | None = None
    ) -> None:
        held = [each for each in facts if not isinstance(each, WorkloadFacts) or each.admission is not None]
        self.kueue = Kueue(queues(*held, settings=settings))
        self.intake = Intake(Cluster())
        for each in nodes:
            self.intake.apply(NodeSeen(each.facts()))
            self.kueue.queues.put(QueueNode(each.name, dict(each.labels)))
        placement = Placement(self.intake.cluster, profile_named("Shoal", self.intake.cluster, PodMix()))
        placement.renew()
        self.proof = Proof(self.kueue.queues, self.intake, placement, self.pods_of, self.running_of)
        for facts_ in facts:
            if isinstance(facts_, WorkloadFacts) and facts_.admission is None:
                self.kueue.put_workload(facts_, 0.0)

    def pods_of(self, facts: WorkloadFacts, admission: QuotaAssignment) -> list[PodArrived]:
        pods = []
        for wanted, given in zip(facts.pod_sets, admission.pod_sets, strict=True):
            asks = ask().gpus(wanted.requests["nvidia.com/gpu"])
            for name in set(given.flavors.values()):
                for key, value in self.kueue.queues.flavors[name].labels.items():
                    asks = asks.select(key, "In", value)
            pods += [PodArrived(f"{facts.key}-{n}", asks.made(), facts.priority) for n in range(given.count)]
        return pods

    def running_of(self, workload_key: str) -> list[str]:
        return [pod for pod in self.intake.cluster.pods if pod.startswith(f"{workload_key}-")]

    def runs(self, facts: WorkloadFacts, *nodes: str) -> None:
        """Pods of an admitted workload are on these nodes."""
        assert facts.admission is not None
        for pod, where in zip(self.pods_of(facts, facts.admission), nodes, strict=True):
            self.intake.apply(PodBound(pod.key, pod.ask, where, priority=facts.priority))

    def cycle(self) -> tuple[list[str], list[str], dict[str, Wait]]:
        """(admitted, told to stop, who waits why)"""
        done = self.kueue.cycle(0.0, self.proof)
        return (
            [each.workload.removeprefix("default/") for each in done.admitted],
            [each.workload.removeprefix("default/") for each in done.preempted],
            {each.workload.removeprefix("default/"): each.why for each in done.waiting},
        )


def test_more_pods_than_all_nodes_can_hold_wait_and_nobody_counts_them_one_by_one() -> None:
    world = World([node("n1").gpus(4)], cluster_queue("a", gpu=8), workload("endless", "a", gpu=0, count=2_000_000_000))
    made: list[str] = []
    world.proof.pods_of = lambda facts, _: made.append(facts.key) or []  # type: ignore[func-returns-value]
    assert world.cycle() == ([], [], {"endless": Wait.TOPOLOGY})
    assert made == []


def test_what_fits_the_quota_and_no_node_waits() -> None:
    """Eight GPUs are free, four on each of two nodes; a pod that wants eight of one node has no place."""
    halves = [node("n1").gpus(4), node("n2").gpus(4)]
    world = World(
        halves,
        cluster_queue("a", gpu=8),
        workload("wide", "a", gpu=8, priority=1),
        workload("pair", "a", gpu=4, count=2),
    )
    before = facts_by_name(world.intake.cluster)
    assert world.cycle() == ([], [], {"wide": Wait.TOPOLOGY})
    assert facts_by_name(world.intake.cluster) == before
    assert world.cycle() == (["pair"], [], {})
    assert sorted(place.node for place in world.proof.placed) == ["n1", "n2"]


@pytest.mark.parametrize(
    "trial", [Proof.admit, lambda proof, *what: proof.would_fit(*what, ())], ids=["one of its own", "one for a claim"]
)
def test_of_a_trial_that_breaks_while_pods_line_up_nothing_is_left(trial: Callable[..., object]) -> None:
    world = World([node("n1").gpus(8)], cluster_queue("a", gpu=8))
    held = admitted(workload("trio", "a", gpu=1, count=3), "a")
    odd(world.intake, "apply", at=(1,))
    with pytest.raises(OddError):
        trial(world.proof, held, held.admission)
    assert not world.intake.cluster.pending.in_order()
    assert not world.intake.cluster.pods


def test_places_that_were_proven_are_taken() -> None:
    world = World(
        [node("n1").gpus(8)],
        cluster_queue("a", gpu=8),
        cluster_queue("b", gpu=8),
        workload("a1", "a", gpu=8),
        workload("b1", "b", gpu=8, created=1),
    )
    assert world.cycle() == (["a1"], [], {"b1": Wait.TOPOLOGY})


def test_quota_only_asks_no_node() -> None:
    only = Settings(placement="quotaOnly")
    world = World([node("n1").gpus(4)], cluster_queue("a", gpu=8), workload("w", "a", gpu=8), settings=only)
    assert world.cycle() == (["w"], [], {})
    assert world.proof.placed == []


def test_where_no_node_of_the_flavor_is_known_quota_decides_and_it_is_said() -> None:
    elsewhere = flavor("cloud", {"pool": "cloud"})
    world = World(
        [node("n1").gpus(4)], elsewhere, cluster_queue("a", quotas("cloud", gpu=8)), workload("w", "a", gpu=8)
    )
    (done,) = world.kueue.cycle(0.0, world.proof).admitted
    assert not done.proven


def test_another_flavor_is_taken_where_the_first_has_no_place() -> None:
    world = World(
        [node("n1").gpus(4).label("pool", "x"), node("n2").gpus(8).label("pool", "y")],
        flavor("x", {"pool": "x"}),
        flavor("y", {"pool": "y"}),
        cluster_queue("a", quotas("x", gpu=8), quotas("y", gpu=8)),
        workload("w", "a", gpu=8),
    )
    (done,) = world.kueue.cycle(0.0, world.proof).admitted
    assert done.proven
    assert done.admission.pod_sets[0].flavors == {"nvidia.com/gpu": "y"}


def test_who_waits_for_the_pods_of_those_that_gave_quota_back_is_not_passed_by() -> None:
    """Nobody else is told to stop for it either."""
    low = admitted(workload("low", "a", gpu=4), "a")
    other = admitted(workload("other", "a", gpu=4), "a")
    world = World(
        [node("n1").gpus(8), node("n2").gpus(4)],
        cluster_queue("a", rules=LOWER, cohort="all", gpu=16),
        cluster_queue("b", cohort="all", gpu=4),
        other,
        workload("high", "a", gpu=8, priority=1),
        workload("small", "b", gpu=4, created=1),
    )
    world.runs(low, "n1")
    world.runs(other, "n2")
    world.proof.terminating = lambda: world.running_of("default/low")
    before = facts_by_name(world.intake.cluster)
    waits = {"high": Wait.VICTIMS, "small": Wait.TOPOLOGY}
    assert world.cycle() == ([], [], waits)
    assert facts_by_name(world.intake.cluster) == before
    for pod in world.running_of("default/low"):
        world.intake.apply(PodGone(pod))
    world.kueue.wake()
    assert world.cycle()[:2] == (["high"], [])


def test_who_may_start_smaller_does_with_as_many_as_have_places() -> None:
    """Quota would do for all forty, and nodes for six."""
    world = World(
        [node("n1").gpus(4), node("n2").gpus(2)],
        cluster_queue("a", gpu=500),
        workload("w", "a", pod_set(count=40, least=4, gpu=1)),
    )
    (done,) = world.kueue.cycle(0.0, world.proof).admitted
    assert done.admission.pod_sets[0].count == len(world.proof.placed) == 6


def test_who_may_not_start_so_small_waits() -> None:
    world = World(
        [node("n1").gpus(4)], cluster_queue("a", gpu=500), workload("w", "a", pod_set(count=40, least=5, gpu=1))
    )
    before = facts_by_name(world.intake.cluster)
    assert world.cycle() == ([], [], {"w": Wait.TOPOLOGY})
    assert facts_by_name(world.intake.cluster) == before


def test_lower_work_yields_for_places_as_it_does_for_quota() -> None:
    low = admitted(workload("low", "a", gpu=4), "a")
    world = World(
        [node("n1").gpus(8)], cluster_queue("a", rules=LOWER, gpu=16), low, workload("high", "a", gpu=8, priority=1)
    )
    world.runs(low, "n1")
    before = facts_by_name(world.intake.cluster)
    assert world.cycle() == ([], ["low"], {"high": Wait.VICTIMS})
    assert facts_by_name(world.intake.cluster) == before


def test_nobody_yields_where_that_would_not_make_a_place() -> None:
    low = admitted(workload("low", "a", gpu=4), "a")
    other = node("n2").gpus(8).label("pool", "other")
    world = World(
        [node("n1").gpus(4), other], cluster_queue("a", rules=LOWER, gpu=16), low, workload("w", "a", gpu=8, priority=1)
    )
    world.runs(low, "n1")
    blocker = replace(admitted(workload("blocks", "a", gpu=1, priority=5), "a"))
    world.kueue.put_workload(blocker, 0.0)
    world.runs(blocker, "n2")
    assert world.cycle() == ([], [], {"w": Wait.TOPOLOGY})


def test_would_fit_leaves_no_trace() -> None:
    low = admitted(workload("low", "a", gpu=8), "a")
    world = World([node("n1").gpus(8)], cluster_queue("a", gpu=16), low)
    world.runs(low, "n1")
    before = facts_by_name(world.intake.cluster)
    wanted = admitted(workload("w", "a", gpu=8), "a")
    assert wanted.admission is not None
    assert not world.proof.would_fit(wanted, wanted.admission, [])
    assert world.proof.would_fit(wanted, wanted.admission, ["default/low"])
    assert world.proof.admit(wanted, wanted.admission) is Proven.NO_CAPACITY
    assert facts_by_name(world.intake.cluster) == before


def test_nobody_is_told_to_stop_for_what_no_node_can_hold() -> None:
    """Quota of eight would be there without the borrower, but no node has so many."""
    small = admitted(workload("small", "b", gpu=2), "b")
    world = World(
        [node("n1").gpus(4)],
        cluster_queue("a", cohort="all", strict=True, rules=PreemptionRules(reclaim="Any"), gpu=8),
        cluster_queue("b", cohort="all", gpu=0),
        small,
        workload("big", "a", gpu=8),
    )
    world.runs(small, "n1")
    assert world.cycle() == ([], [], {"big": Wait.TOPOLOGY})


def test_who_falls_to_a_flavor_in_which_it_borrows_does_so_in_its_turn() -> None:
    """No node of the first flavor holds `x`; in the second it borrows, and so comes after the queue whose own it is."""
    world = World(
        [node("n1").gpus(4).label("pool", "x"), node("n2").gpus(8).label("pool", "y")],
        flavor("x", {"pool": "x"}),
        flavor("y", {"pool": "y"}),
        cluster_queue("one", quotas("x", gpu=8), quotas("y", gpu=0), cohort="all"),
        cluster_queue("two", quotas("y", gpu=8), cohort="all", rules=PreemptionRules(reclaim="Any")),
        workload("x", "one", gpu=8),
        workload("y", "two", gpu=8, created=1),
    )
    assert world.cycle() == (["y"], [], {"x": Wait.TOPOLOGY})
    assert world.cycle() == ([], [], {"x": Wait.QUOTA})
    assert world.cycle() == ([], [], {})
    assert world.kueue.is_idle


def test_who_falls_to_a_flavor_in_which_it_borrows_gets_it_where_nobody_else_asks() -> None:
    world = World(
        [node("n1").gpus(4).label("pool", "x"), node("n2").gpus(8).label("pool", "y")],
        flavor("x", {"pool": "x"}),
        flavor("y", {"pool": "y"}),
        cluster_queue("one", quotas("x", gpu=8), quotas("y", gpu=0), cohort="all"),
        cluster_queue("two", quotas("y", gpu=8), cohort="all"),
        workload("x", "one", gpu=8),
    )
    assert world.cycle()[0] == []
    assert world.cycle()[0] == ["x"]


def test_nobody_takes_the_places_that_others_have_to_leave_for_somebody() -> None:
    low = admitted(workload("low", "a", gpu=4), "a")
    world = World(
        [node("n1").gpus(8)],
        cluster_queue("a", rules=LOWER, gpu=8),
        cluster_queue("b", gpu=8),
        low,
        workload("high", "a", gpu=8, priority=1),
        workload("other", "b", gpu=4),
    )
    world.runs(low, "n1")
    assert world.cycle() == ([], ["low"], {"high": Wait.VICTIMS, "other": Wait.TOPOLOGY})
