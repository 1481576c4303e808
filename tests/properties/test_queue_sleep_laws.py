"""What the discipline leaves out must not show: lines that sleep, sums that are kept, heads that are remembered."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.obeying import Obeying, played, queues_of
from build.queue_stories import BOTH, ONE, Bounds, Explanation, Round
from build.queue_worlds import stories
from build.queues import admitted as holds
from build.queues import cluster_queue, group, pod_set, queues, quotas, workload
from build.tas import LEVELS, host
from shoal.engine.queues.decisions import Decisions
from shoal.engine.queues.entry import CycleEntry
from shoal.engine.queues.facts import FlavorFacts, PodSet, PreemptionRules
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.pending_workloads import LocalUse
from shoal.engine.queues.quota_tree import CohortNode
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact, Queues
from shoal.engine.queues.topology_facts import TopologyLevels, TopologyRequest

ONE_FLAVOR = Bounds(shapes=(ONE, BOTH))


class Restless(Kueue):
    """Looks at every head in every cycle, as Kueue does."""

    def _heads(self, local_use: LocalUse | None) -> list[CycleEntry]:
        for name in self.queues.cluster_queues:
            self._active_trees.add(name)
        return super()._heads(local_use)


@settings(max_examples=examples(80), deadline=None)
@given(stories(ONE_FLAVOR))
def test_lines_that_sleep_decide_what_they_would_decide_awake(story: Explanation) -> None:
    """Cycle by cycle. With one flavor: the search over several goes on where it stopped, cycle after cycle, so its turn
    depends on how many cycles there were."""
    one, two = Obeying(story), Obeying(story, Restless)
    for happening in [*story.happenings, *[Round(is_over=True)] * 6]:
        if isinstance(happening, Round):
            assert _moves(one.cycle()) == _moves(two.cycle())
            if happening.is_over:
                one.let_go()
                two.let_go()
        else:
            one.tell(happening)
            two.tell(happening)


def _moves(decisions: Decisions) -> object:
    return (
        sorted(each.workload for each in decisions.admitted),
        sorted((each.workload, each.beneficiary) for each in decisions.preempted),
    )


@settings(max_examples=examples(60), deadline=None)
@given(stories(Bounds(within=False, reclaim=False, pod_sets=1)))
def test_an_idle_world_that_is_woken_decides_nothing_new(story: Explanation) -> None:
    """Without preemption: an admission makes nobody room, but may make somebody who borrows, and so a victim. Kueue
    does not look at parked workloads again for that."""
    world = played(story)
    world.rest()
    world.kueue.wake()
    assert all(done.is_quiet for done in world.rest())


# What nobody may be forgotten for


def admitted(decisions: list[Decisions]) -> list[str]:
    return [each.workload.partition("/")[2] for done in decisions for each in done.admitted]


def test_who_lost_to_somebody_who_then_gave_up_is_tried_again() -> None:
    """`large` keeps all that is free for a cycle though nobody yields to it; then it is parked, and `small` starts."""
    kueue = Kueue(
        queues(
            cluster_queue("a", cohort="all", cpu=1),
            cluster_queue("b", cohort="all", cpu=1, rules=PreemptionRules(borrow="LowerPriority")),
            cluster_queue("c", cohort="all", cpu=2),
            holds(workload("first", "b", cpu=1, priority=9), "b"),
        )
    )
    kueue.put_workload(workload("large", "b", cpu=4, priority=1), 1)
    kueue.put_workload(workload("small", "a", cpu=2), 1)
    assert admitted(kueue.run(1)) == ["small"]


def test_who_lost_its_flavor_in_a_cycle_looks_at_all_flavors_again() -> None:
    kueue = Kueue(
        queues(
            cluster_queue("lender", quotas("one", cpu=4), cohort="all"),
            cluster_queue("borrower", quotas("one", cpu=0), quotas("two", cpu=0), cohort="all"),
            holds(workload("first", "lender", cpu=2), "lender", "one"),
        )
    )
    kueue.put_workload(workload("large", "lender", cpu=3), 0)
    kueue.put_workload(workload("small", "borrower", cpu=1), 0)
    assert admitted(kueue.run(0)) == ["small"]


def test_when_the_head_of_a_strict_queue_gives_up_the_next_is_tried() -> None:
    kueue = Kueue(queues(cluster_queue("a", strict=True, cpu=1)))
    kueue.put_workload(workload("large", "a", cpu=2, priority=1), 0)
    kueue.put_workload(workload("small", "a", cpu=1), 0)
    assert admitted(kueue.run(0)) == []
    kueue.drop_workload("default/large", 1)
    assert admitted(kueue.run(1)) == ["small"]


def test_a_search_over_flavors_that_goes_round_comes_to_an_end() -> None:
    """One pod set takes the flavor that the other needs, and next time the other way round."""
    kueue = Kueue(
        queues(
            cluster_queue("a", quotas("one", cpu=4), quotas("two", cpu=2)),
            holds(workload("first", "a", cpu=1), "a", "two"),
        )
    )
    kueue.put_workload(workload("both", "a", pod_set("left", cpu=2), pod_set("right", cpu=3)), 0)
    assert admitted(kueue.run(0, most=50)) == []
    assert kueue.is_idle


def test_searches_of_two_strict_heads_do_not_keep_each_other_awake() -> None:
    chips = quotas("one", chips=1), quotas("two", chips=0)
    kueue = Kueue(
        queues(
            cluster_queue("a", group(quotas("default", cpu=1)), group(*chips), cohort="all", strict=True),
            cluster_queue("b", group(quotas("default", cpu=1)), group(*chips), cohort="all", strict=True),
            holds(workload("first", "b", cpu=2), "b"),
        )
    )
    kueue.put_workload(workload("early", "b", cpu=1, chips=1), 0)
    kueue.cycle(0)
    kueue.put_workload(workload("late", "a", cpu=1, chips=1), 1)
    assert admitted(kueue.run(1, most=50)) == []
    assert kueue.is_idle


# Kept and summed anew


@settings(max_examples=examples(40), deadline=None)
@given(stories())
def test_after_any_history_all_is_as_if_it_had_been_read_just_now(story: Explanation) -> None:
    world = played(story)
    world.kueue.cycle(world.now_s)
    fresh = Kueue(queues_of(sorted(world.facts.values(), key=repr), story.settings))
    kept = world.kueue
    world.kueue = kept
    for key, held in sorted(kept.queues.held.items()):
        assert held.key == key
        fresh.put_workload(held.facts, world.now_s)
    waiting = [
        each for name in kept.queues.cluster_queues if (line := kept.pending_of(name)) for each, _ in line.each()
    ]
    for each in sorted(waiting, key=lambda each: each.key):
        fresh.put_workload(each.facts, world.now_s)
    assert _tree(kept.queues) == _tree(fresh.queues)
    assert _lines(kept) == _lines(fresh)


def _tree(queues: Queues) -> object:
    nodes: list[CohortNode] = [*queues.cluster_queues.values(), *queues.cohorts.values()]
    return {
        (type(node).__name__, node.name): (
            node.parent.name if node.parent is not None else None,
            node.weight,
            node.nominal,
            node.borrowing,
            node.subtree,
            {fr: amount for fr, amount in node.kept.items() if amount},
            {fr: amount for fr, amount in node.usage.items() if amount},
        )
        for node in nodes
    }, {name: (queue.closed, sorted(queue.held)) for name, queue in queues.cluster_queues.items()}


def _lines(kueue: Kueue) -> dict[str, list[str]]:
    """Who stands where once everybody is awake. That somebody waits for victims, and so comes first, is no fact."""
    kueue.wake()
    found: dict[str, list[str]] = {}
    for name in kueue.queues.cluster_queues:
        line = kueue.pending_of(name)
        if line is None:
            continue
        line._sticky = ""
        while (head := line.pop()) is not None:
            found.setdefault(name, []).append(head.key)
            line.admitted()
    return found


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.integers(1, 4), st.sampled_from(["block", "rack", ""])),
        st.tuples(st.just("go"), st.integers(0, 9), st.just("")),
        st.tuples(st.just("node"), st.integers(0, 5), st.just("")),
        st.tuples(st.just("cycle"), st.just(0), st.just("")),
    ),
    min_size=4,
    max_size=14,
)


@settings(max_examples=examples(20), deadline=None)
@given(STEPS)
def test_after_any_history_the_forests_are_those_of_a_fresh_start(steps: list[tuple[str, int, str]]) -> None:
    nodes = [f"b{index // 4}-r{index // 2}-x{index}" for index in range(6)]
    facts: list[Fact] = [
        TopologyLevels("dc", LEVELS),
        FlavorFacts("default", topology="dc"),
        cluster_queue("a", cpu=40),
        *(host(name, 2) for name in nodes[:4]),
    ]
    kept = Kueue(queues(*facts, settings=Settings()))
    alive: list[str] = []
    for now, (step, number, level) in enumerate(steps):
        match step:
            case "come":
                request = TopologyRequest(required=level) if level else TopologyRequest(unconstrained=True)
                pods = PodSet("main", number, requests={"cpu": 1000}, topology=request)
                alive.append(f"default/w{now}")
                kept.put_workload(workload(f"w{now}", "a", pods), now)
            case "go" if alive:
                kept.drop_workload(alive.pop(number % len(alive)), now)
            case "node":
                kept.queues.put(host(nodes[number], 1 + now % 3))
            case "cycle":
                kept.cycle(now)
    kept.run(99)
    fresh = queues(*facts[:3], *kept.queues.nodes.values())
    for held in sorted(kept.queues.held.values(), key=lambda held: held.key):
        fresh.hold(held.facts, held.stamp_s)
    one, two = kept.queues.forest("default"), fresh.forest("default")
    assert one is not None
    assert two is not None
    assert one.paths == two.paths
    assert {name: list(column) for name, column in one.free.items()} == {
        name: list(column) for name, column in two.free.items()
    }
    assert all((column >= 0).all() for column in one.free.values()) or any(step == "node" for step, _, _ in steps)
