"""Rules of Kueue about topologies that hold in a whole cycle: candidates, new nominations, moves, order of hosts."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from msgspec.structs import replace

from build.queues import admitted, cluster_queue, flavor, node, pod_set, queues, quotas, topology, workload
from build.tas import BLOCK, HOST, RACK, TasWorld, hosts, pods, required
from shoal.engine.queues.decisions import Decisions
from shoal.engine.queues.facts import PodSet, PodSetAdmission, PreemptionRules, QuotaAssignment, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact
from shoal.engine.queues.topology_facts import SliceLayer, TopologyAssignment, TopologyRequest

ON_ONE_HOST = TopologyRequest(required=HOST)
LOWER = PreemptionRules(within="LowerPriority")
RECLAIMS = PreemptionRules(within="LowerPriority", reclaim="Any")


def kueue(*facts: Fact | WorkloadFacts) -> Kueue:
    """Every flavor is `tas`, over hosts."""
    ground: tuple[Fact, ...] = (flavor("tas", {"pool": "x"}, topology="hosts"), topology("hosts", HOST))
    held = [each for each in facts if not isinstance(each, WorkloadFacts) or each.admission is not None]
    found = Kueue(queues(*ground, *held))
    for each in facts:
        if isinstance(each, WorkloadFacts) and each.admission is None:
            found.put_workload(each, 0.0)
    return found


def on_host(**amounts: Any) -> PodSet:
    return pod_set(topology=ON_ONE_HOST, **amounts)


def runs(name: str, queue: str, host: str, *, failed: tuple[str, ...] = (), **amounts: Any) -> WorkloadFacts:
    """An admitted workload of one pod."""
    wanted = on_host(**amounts)
    where = TopologyAssignment((HOST,), (((host,), 1),))
    given = PodSetAdmission("main", 1, dict.fromkeys(wanted.requests, "tas"), dict(wanted.requests), where)
    facts = workload(name, queue, wanted)
    admission = QuotaAssignment(queue, (given,))
    return replace(facts, admission=admission, admitted=True, unhealthy_nodes=failed)


def names(decisions: Decisions) -> list[str]:
    return [each.workload.removeprefix("default/") for each in decisions.admitted]


def preempted(decisions: Decisions) -> set[str]:
    return {each.workload.removeprefix("default/") for each in decisions.preempted}


def state_of(found: Kueue, name: str) -> tuple[str, Wait]:
    return next((each.state, each.why) for each in found.states() if each.workload == f"default/{name}")


# -- candidates for preemption -----------------------------------------------------------------------------------------


def test_for_a_topology_whoever_uses_any_of_its_resources_may_be_preempted_though_quota_is_left() -> None:
    """Only GPUs are short of quota, but the cores of the host with GPUs are taken by work without GPUs."""
    found = kueue(
        cluster_queue("a", quotas("tas", cpu=32, gpu=4), rules=LOWER),
        node("n1", {"pool": "x"}, cpu=8, gpu=4),
        node("n2", {"pool": "x"}, cpu=8),
        runs("cores", "a", "n1", cpu=7),
        runs("gpus", "a", "n1", cpu=1, gpu=4),
        workload("new", "a", on_host(cpu=8, gpu=4), priority=5),
    )
    assert preempted(found.cycle(0)) == {"cores", "gpus"}


def test_that_holds_for_all_pod_sets_with_a_topology_where_one_finds_no_domain() -> None:
    """The host with GPUs takes one pod. Work that only uses what the other pod set asks for yields as well."""
    found = kueue(
        cluster_queue("a", quotas("tas", cpu=32, gpu=8), rules=LOWER),
        node("n1", {"pool": "x"}, cpu=8),
        node("n2", {"pool": "x"}, pods=1, cpu=2, gpu=4),
        runs("cores", "a", "n2", cpu=2),
        workload("new", "a", on_host(cpu=8), replace(on_host(gpu=4), name="second"), priority=5),
    )
    assert preempted(found.cycle(0)) == {"cores"}


def test_nobody_is_preempted_for_a_pod_set_that_would_not_fit_on_empty_hosts() -> None:
    found = kueue(
        cluster_queue("a", quotas("tas", cpu=32, gpu=4), rules=LOWER),
        node("n1", {"pool": "x"}, cpu=8, gpu=4),
        runs("gpus", "a", "n1", cpu=1, gpu=4),
        workload("new", "a", on_host(cpu=9, gpu=4), priority=5),
    )
    assert preempted(found.cycle(0)) == set()


def test_without_a_topology_only_what_is_short_of_quota_is_freed() -> None:
    held = [
        admitted(workload("cores", "a", cpu=7), "a", at=2.0),
        admitted(workload("gpus", "a", cpu=1, gpu=4), "a", at=1.0),
    ]
    found = Kueue(queues(cluster_queue("a", cpu=16, gpu=4, rules=LOWER), *held))
    found.put_workload(workload("new", "a", cpu=8, gpu=4, priority=5), 0)
    assert preempted(found.cycle(0)) == {"gpus"}


# -- heads that are nominated anew in their cycle -------------------------------------------------------------------


def rivals(reclaim: Literal["Never", "LowerPriority", "Any"], *more: Fact | WorkloadFacts) -> Kueue:
    """Two heads want the one host that is large enough; there is quota for both. A third may borrow what is left."""
    mine = PreemptionRules(reclaim=reclaim)
    return kueue(
        cluster_queue("a", quotas("tas", cpu=8), cohort="all", rules=RECLAIMS),
        cluster_queue("b", quotas("tas", cpu=8), cohort="all", rules=mine),
        cluster_queue("c", quotas("tas", cpu=0), cohort="all"),
        node("n1", {"pool": "x"}, cpu=8),
        node("n2", {"pool": "x"}, cpu=4),
        workload("a1", "a", on_host(cpu=8), priority=9),
        workload("b1", "b", on_host(cpu=8), priority=5),
        *more,
    )


def test_a_head_whose_domain_was_taken_and_for_which_nobody_yields_is_parked() -> None:
    found = rivals("Never")
    assert names(found.cycle(0)) == ["a1"]
    assert state_of(found, "b1") == ("inadmissible", Wait.TOPOLOGY)


@pytest.mark.parametrize(("reclaim", "admits"), [("Never", ["a1"]), ("LowerPriority", ["a1"]), ("Any", ["a1", "c1"])])
def test_its_own_quota_is_kept_in_that_cycle_unless_it_can_always_be_reclaimed(
    reclaim: Literal["Never", "LowerPriority", "Any"], admits: list[str]
) -> None:
    found = rivals(reclaim, workload("c1", "c", on_host(cpu=4), priority=1))
    assert names(found.cycle(0)) == admits


def overlapping(*more: Fact | WorkloadFacts, cpu: int = 8) -> Kueue:
    """Both heads need the end of the same borrower. The host of it has room for one head (`cpu` cores), or for two."""
    return kueue(
        cluster_queue("a", quotas("tas", cpu=8), cohort="all", rules=RECLAIMS),
        cluster_queue("b", quotas("tas", cpu=8), cohort="all", rules=RECLAIMS),
        cluster_queue("c", quotas("tas", cpu=0), cohort="all"),
        node("n1", {"pool": "x"}, cpu=8),
        runs("borrower", "c", "n1", cpu=8),
        workload("a1", "a", on_host(cpu=cpu), priority=9),
        workload("b1", "b", on_host(cpu=cpu), priority=5),
        *more,
    )


def test_a_head_that_shares_its_only_victim_with_another_is_parked() -> None:
    found = overlapping()
    assert preempted(found.cycle(0)) == {"borrower"}
    assert state_of(found, "a1")[0] == "active"
    assert state_of(found, "b1") == ("inadmissible", Wait.TOPOLOGY)


def test_a_head_that_fits_once_the_victims_of_another_are_gone_waits_for_them() -> None:
    found = overlapping(cpu=4)
    assert preempted(found.cycle(0)) == {"borrower"}
    assert state_of(found, "b1") == ("active", Wait.VICTIMS)
    found.drop_workload("default/borrower", 1)
    assert sorted(name for each in found.run(1) for name in names(each)) == ["a1", "b1"]


# -- workloads that move off a failed node --------------------------------------------------------------------------


def test_nobody_else_of_the_cycle_gets_the_domains_that_a_moved_workload_leaves_and_the_next_cycle_does() -> None:
    found = kueue(
        cluster_queue("a", quotas("tas", cpu=32)),
        node("n1", {"pool": "x"}, cpu=8),
        node("n2", {"pool": "x"}, cpu=8),
        runs("moves", "a", "n1", failed=("n1",), cpu=8),
        workload("new", "a", on_host(cpu=8)),
    )
    first = found.cycle(0)
    assert [(each.workload, each.again) for each in first.admitted] == [("default/moves", True)]
    assert names(found.cycle(1)) == ["new"]


# -- the order of hosts ------------------------------------------------------------------------------------------------

LAYERS = (SliceLayer(RACK, 8), SliceLayer(HOST, 2))


@pytest.mark.parametrize(
    ("sizes", "goes"),
    [
        (["b-r1-x1=6", "b-r1-x2=4", "b-r1-x3=2"], "x1=2 x2=4 x3=2"),
        (["b-r1-x1=4", "b-r1-x2=4", "b-r1-x3=4"], "x1=4 x2=4"),
        (["b-r1-x1=11", "b-r1-x2=8", "b-r1-x3=2"], "x2=6 x3=2"),
        (["b-r1-x1=3", "b-r1-x2=5", "b-r1-x3=8"], "x1=2 x2=4 x3=2"),
        (["b-r1-x1=7", "b-r1-x2=3", "b-r1-x3=5"], "x1=2 x2=2 x3=4"),
    ],
)
def test_below_the_outermost_slices_the_smallest_host_comes_first_in_inner_layers_too(
    sizes: list[str], goes: str
) -> None:
    assert TasWorld(hosts(*sizes)).places(pods(8, topology=required(BLOCK, layers=LAYERS))) == goes


def test_inner_layers_count_without_any_gate_in_the_configuration() -> None:
    assert "TASMultiLayerTopology" in Settings().gates
    world = TasWorld(hosts("b-r1-x1=3", "b-r1-x2=3", "b-r1-x3=3"))
    assert world.refuses(pods(8, topology=required(BLOCK, layers=LAYERS))).pod_set == "main"
