"""Work that grows while it runs: the newer workload is charged what it wants more, the older one nothing any more."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from build.queues import admitted, cluster_queue, flavor, limited, node, pod_set, queues, quotas, topology, workload
from shoal.engine.queues.decisions import Decisions
from shoal.engine.queues.facts import ClusterQueueFacts, PreemptionRules, QuotaAssignment, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.proof import Claim, Proven
from shoal.engine.queues.remedies.search import remedies
from shoal.engine.queues.remedies.trials import SearchLimit
from shoal.engine.queues.state import Fact
from shoal.engine.queues.topology_facts import TopologyAssignment, TopologyRequest

ANY_NEWER = PreemptionRules(within="LowerOrNewerEqualPriority")


def world(*facts: Fact | WorkloadFacts) -> Kueue:
    found = Kueue(queues(*(each for each in facts if not isinstance(each, WorkloadFacts))))
    for each in facts:
        if isinstance(each, WorkloadFacts):
            found.put_workload(each, 0.0)
    return found


def grown(count: int, of: str = "old", **more: object) -> WorkloadFacts:
    asked = workload("new", "q", pod_set(count=count, cpu=1), created=9)
    return replace(asked, replaces=f"default/{of}", **more)


def old(count: int = 2, **more: object) -> WorkloadFacts:
    return replace(admitted(workload("old", "q", pod_set(count=count, cpu=1), created=1), "q"), **more)


def used(found: Kueue, resource: str = "cpu") -> int:
    return found.queues.cluster_queues["q"].usage.get(("default", resource), 0)


def names(decisions: Decisions) -> list[str]:
    return [each.workload.removeprefix("default/") for each in decisions.admitted]


def test_only_what_is_wanted_more_has_to_be_free() -> None:
    found = world(cluster_queue("q", cpu=4), old(3), grown(4))
    decisions = found.cycle(10.0)
    assert names(decisions) == ["new"]
    (admission,) = (each.admission for each in decisions.admitted)
    assert [(each.count, each.usage["cpu"]) for each in admission.pod_sets] == [(4, 4000)]
    assert (used(found), [*found.queues.held]) == (4000, ["default/new"])


def test_more_than_there_is_waits_and_the_old_one_goes_on() -> None:
    found = world(cluster_queue("q", cpu=4), old(3), grown(5))
    assert names(found.cycle(10.0)) == []
    assert (used(found), [*found.queues.held]) == (3000, ["default/old"])
    found.drop_workload("default/old", 20.0, finished=True)
    assert names(found.cycle(21.0)) == []


def test_what_the_old_one_still_says_is_charged_no_more() -> None:
    found = world(cluster_queue("q", cpu=6), old(3), grown(4))
    found.cycle(10.0)
    found.put_workload(old(3, pods_ready=False), 11.0)
    assert used(found) == 4000
    found.drop_workload("default/old", 12.0, finished=True)
    assert used(found) == 4000
    found.drop_workload("default/new", 13.0, finished=True)
    assert used(found) == 0


def test_whoever_comes_after_reads_them_in_any_order() -> None:
    new = grown(4, admission=admitted(workload("new", "q", pod_set(count=4, cpu=1)), "q").admission, admitted=True)
    for order in ((old(3), new), (new, old(3))):
        found = world(cluster_queue("q", cpu=6), *order)
        assert (used(found), [*found.queues.held]) == (4000, ["default/new"])
        found.put_workload(replace(new, reserved_s=5.0), 1.0)
        assert used(found) == 4000


def test_the_old_one_holds_again_what_it_held_if_the_new_one_gives_all_back() -> None:
    found = world(cluster_queue("q", cpu=6), old(3), grown(4))
    found.cycle(10.0)
    found.put_workload(grown(4, active=False), 11.0)
    assert (used(found), [*found.queues.held]) == (3000, ["default/old"])


def test_a_queue_that_is_gone_for_a_while_changes_nothing() -> None:
    found = world(cluster_queue("q", cpu=6), old(3), grown(4))
    found.cycle(10.0)
    found.queues.drop(ClusterQueueFacts, "q")
    found.queues.refresh()
    found.drop_workload("default/new", 11.0)
    found.queues.put(cluster_queue("q", cpu=6))
    found.queues.refresh()
    assert (used(found), [*found.queues.held]) == (3000, ["default/old"])


def test_it_stays_in_its_flavor() -> None:
    there = cluster_queue("q", quotas("default", cpu=4), quotas("spot", cpu=9))
    found = world(flavor("default"), flavor("spot"), there, old(3), grown(5))
    assert names(found.cycle(10.0)) == []
    assert names(found.cycle(11.0)) == []
    found.put_workload(grown(4), 12.0)
    (done,) = (each for each in (found.cycle(13.0),) if each.admitted)
    assert done.admitted[0].admission.pod_sets[0].flavors == {"cpu": "default"}


class RoomForOne:
    """Of nodes that take one pod more."""

    def admit(self, facts: WorkloadFacts, admission: QuotaAssignment, claims: Sequence[Claim] = ()) -> Proven:
        return Proven.PLACED if self.would_fit(facts, admission, ()) else Proven.NO_CAPACITY

    def would_fit(
        self, facts: WorkloadFacts, admission: QuotaAssignment, gone: Iterable[str], claims: Sequence[Claim] = ()
    ) -> bool:
        return sum(each.count for each in admission.pod_sets) <= 1


def test_it_grows_whole_or_not_at_all() -> None:
    found = world(cluster_queue("q", cpu=9), old(3), grown(5))
    assert names(found.cycle(10.0, RoomForOne())) == []
    found.put_workload(grown(4), 11.0)
    assert names(found.cycle(12.0, RoomForOne())) == ["new"]


@pytest.mark.parametrize(("least", "quota", "grows_to"), [(4, 9, 4), (1, 9, 4), (5, 9, None), (4, 4, 4), (4, 3, None)])
def test_it_grows_by_as_many_pods_as_there_are_places_for_where_it_may_start_with_fewer(
    least: int, quota: int, grows_to: int | None
) -> None:
    smaller = replace(workload("new", "q", pod_set(count=6, least=least, cpu=1), created=9), replaces="default/old")
    found = world(cluster_queue("q", cpu=quota), old(3), smaller)
    admissions = [each.admission for each in found.cycle(10.0, RoomForOne()).admitted]
    assert [each.count for admission in admissions for each in admission.pod_sets] == [grows_to] * (
        grows_to is not None
    )
    assert used(found) == 1000 * (grows_to or 3)


def test_others_yield_to_it_and_never_the_one_whose_place_it_takes() -> None:
    other = admitted(workload("other", "q", pod_set(count=3, cpu=1), created=20), "q")
    found = world(cluster_queue("q", cpu=6, rules=ANY_NEWER), old(3), other, grown(5))
    found.queues.held["default/old"].stamp_s = 99.0
    decisions = found.cycle(30.0)
    assert [each.workload for each in decisions.preempted] == ["default/other"]


def test_while_the_old_one_stops_it_waits() -> None:
    found = world(cluster_queue("q", cpu=9), old(3, evicted_s=5.0, evicted_why="Preempted"), grown(4))
    assert names(found.cycle(10.0)) == []
    found.drop_workload("default/old", 11.0)
    assert names(found.cycle(12.0)) == ["new"]
    assert used(found) == 4000


def test_pods_that_are_there_keep_their_domains() -> None:
    there = TopologyAssignment(("kubernetes.io/hostname",), ((("n2",), 2),))
    request = TopologyRequest(unconstrained=True)
    nodes = [node(f"n{index}", cpu=4) for index in (1, 2)]
    before = admitted(workload("old", "q", pod_set(count=2, cpu=2, topology=request), created=1), "q")
    assert before.admission is not None
    sets = tuple(replace(each, topology=there) for each in before.admission.pod_sets)
    before = replace(before, admission=replace(before.admission, pod_sets=sets))
    more = replace(workload("new", "q", pod_set(count=4, cpu=2, topology=request), created=9), replaces="default/old")
    levels = topology("t", "kubernetes.io/hostname")
    found = world(levels, flavor(topology="t"), cluster_queue("q", cpu=limited(8)), *nodes, before, more)
    (done,) = found.cycle(10.0).admitted
    placed = done.admission.pod_sets[0].topology
    assert placed is not None
    assert dict(placed.domains) == {("n1",): 2, ("n2",): 2}


def test_what_would_help_is_tried_without_a_trace_and_asks_nobody_to_end_his_own_work() -> None:
    other = admitted(workload("other", "q", pod_set(count=2, cpu=1), created=2), "q")
    found = world(cluster_queue("q", cpu=5), old(3), other, grown(5))
    found.cycle(10.0)
    before = (used(found), {key: held.usage for key, held in found.queues.held.items()})
    told = remedies(found, "default/new", now_s=11.0, budget=SearchLimit())
    named = {change.name for remedy in told for change in remedy.changes if change.object == "Workload"}
    assert "default/old" not in named
    assert (used(found), {key: held.usage for key, held in found.queues.held.items()}) == before


def after(before: str, name: str, count: int, owner: str = "") -> WorkloadFacts:
    asked = workload(name, "q", pod_set(count=count, cpu=1), created=count)
    return replace(asked, replaces=f"default/{before}", owner=owner)


def test_work_that_grows_again_and_again_leaves_nothing_behind() -> None:
    found = world(cluster_queue("q", cpu=60), old(3))
    line = ["old", *(f"new-{index}" for index in range(5))]
    for index, (before, name) in enumerate(itertools.pairwise(line)):
        found.put_workload(after(before, name, 4 + index), 1.0)
        assert names(found.cycle(10.0 + index)) == [name]
        found.drop_workload(f"default/{before}", 11.0 + index, finished=True)
    found.drop_workload(f"default/{line[-1]}", 99.0, finished=True)
    assert (used(found), len(found.queues.replacements)) == (0, 0)


def test_of_two_that_want_the_same_place_one_has_it_and_both_are_charged() -> None:
    found = world(cluster_queue("q", cpu=60), old(3), after("old", "a", 4), after("old", "b", 5))
    found.run(10.0)
    assert used(found) == 9000
    for name in ("old", "b", "a"):
        found.drop_workload(f"default/{name}", 12.0)
    assert (used(found), len(found.queues.replacements)) == (0, 0)


def test_nobody_takes_the_place_of_anothers_work() -> None:
    theirs, mine = replace(old(3), owner="theirs"), after("old", "new", 4, "mine")
    found = world(cluster_queue("q", cpu=9), theirs, mine)
    found.run(10.0)
    assert used(found) == 7000
    running = replace(mine, admission=found.queues.held["default/new"].facts.admission, admitted=True)
    for order in ((theirs, running), (running, theirs)):
        again = world(cluster_queue("q", cpu=9), *order)
        assert used(again) == 7000
        again.drop_workload("default/new", 11.0)
        assert used(again) == 3000


def test_who_claims_to_take_his_own_place_or_that_of_his_heir_keeps_nobody_from_his_turn() -> None:
    found = world(cluster_queue("q", cpu=60), after("self", "self", 4), after("b", "a", 2), after("a", "b", 3))
    found.run(10.0)
    assert used(found) == 6000
    found.drop_workload("default/a", 11.0)
    found.run(12.0)
    assert used(found) == 7000
    for name in ("self", "b"):
        found.drop_workload(f"default/{name}", 13.0)
    assert used(found) == 0


def test_a_queue_that_came_back_is_charged_what_the_new_one_gives_back() -> None:
    found = world(cluster_queue("q", cpu=6), old(3), grown(4))
    found.cycle(10.0)
    found.queues.drop(ClusterQueueFacts, "q")
    found.queues.refresh()
    found.queues.put(cluster_queue("q", cpu=6))
    found.queues.refresh()
    found.drop_workload("default/new", 11.0)
    assert (used(found), [*found.queues.held]) == (3000, ["default/old"])


NAMES = ["a", "b", "c", "d"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "admitted", "drop", "give back", "cycle", "queue"]),
        st.sampled_from(NAMES),
        st.integers(1, 5),
        st.sampled_from(["", *NAMES]),
        st.sampled_from(["", "", "x"]),
    ),
    max_size=30,
)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_whoever_claims_whatever_place_each_holder_is_charged_once_and_nothing_stays_behind(
    steps: list[tuple[str, str, int, str, str]],
) -> None:
    found = world(cluster_queue("q", cpu=12))
    queues = found.queues
    for now_s, (step, name, count, of, owner) in enumerate(steps):
        key, facts = f"default/{name}", after(of, name, count, owner) if of else after(name, name, count, owner)
        held = queues.held.get(key)
        if step == "drop":
            found.drop_workload(key, now_s)
        elif step == "give back" and held is not None:
            found.put_workload(replace(held.facts, admission=None, admitted=False), now_s)
        elif step == "queue":
            queues.drop(ClusterQueueFacts, "q")
            queues.refresh()
            queues.put(cluster_queue("q", cpu=12))
            queues.refresh()
        elif step == "cycle":
            found.cycle(now_s)
        elif step in ("put", "admitted"):
            found.put_workload(admitted(facts, "q") if step == "admitted" else facts, now_s)
        assert used(found) == sum(each.usage.get(("default", "cpu"), 0) for each in queues.held.values())
    for name in NAMES:
        found.drop_workload(f"default/{name}", 99.0)
    assert (used(found), len(queues.held), len(queues.replacements)) == (0, 0, 0)
