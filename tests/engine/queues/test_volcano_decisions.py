"""Decisions about Volcano's groups without a server: admission, placement, messages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.volcano_objects import GPUS, group, pod, queue
from shoal.engine.queues.disciplines.volcano.enqueue import PodGroupCandidate, enqueue
from shoal.engine.queues.disciplines.volcano.group_phases import assess, phase_of
from shoal.engine.queues.disciplines.volcano.group_usage import choose_pods
from shoal.engine.queues.disciplines.volcano.objects import GroupPod, Queue, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.pod_counts import GroupPodCounts, count_pods
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree, Usage

# -- who is let in ----------------------------------------------------------------------------------------------------


def let_in(queues: list[Queue], *candidates: PodGroupCandidate) -> set[str]:
    return {name for _, name in enqueue(QueueTree([*queues, queue("root")]), candidates).enqueued}


@pytest.mark.parametrize(
    ("queues", "candidates", "expected"),
    [
        pytest.param([queue("q", 4)], [(group("a", 3), 0), (group("b", 2), 0)], {"a"}, id="the older one of equals"),
        pytest.param([queue("q", 4)], [(group("a", 3), 0), (group("b", 2), 9)], {"b"}, id="the more important one"),
        pytest.param([queue("q", 4)], [(group("a", 5), 0), (group("b", 2), 0)], {"b"}, id="a stuck head is skipped"),
        pytest.param(
            [queue("q", 4, dequeueStrategy="fifo")], [(group("a", 5), 0), (group("b", 2), 0)], set(), id="not in fifo"
        ),
        pytest.param([queue("q", 0)], [(group("a"), 0)], {"a"}, id="one that names no least"),
        pytest.param([queue("q", state="Closed")], [(group("a"), 0)], set(), id="nobody into a closed queue"),
        pytest.param([], [(group("a"), 0)], set(), id="nobody into a queue that is not there"),
        pytest.param(
            [queue("up", 4), queue("q", parent="up"), queue("p", parent="up")],
            [(group("a", 3), 0), (group("b", 2, queue="p"), 0)],
            {"a"},
            id="what stands above holds for all below",
        ),
        pytest.param(
            [queue("q", parent="p"), queue("p", parent="q")], [(group("a", 1), 0)], set(), id="a circle of queues ends"
        ),
        pytest.param(
            [queue("q"), queue("p", parent="q")],
            [(group("a", 1), 0), (group("b", 1, queue="p"), 0)],
            {"b"},
            id="a queue with children takes no groups, and its children do",
        ),
        pytest.param(
            [queue("q", 4)], [(group("a", 3, phase="Inqueue"), 0), (group("b", 2), 0)], set(), id="promises count"
        ),
    ],
)  # fmt: skip
def test_who_is_let_in(queues: list[Queue], candidates: list[tuple[QueuedPodGroup, int]], expected: set[str]) -> None:
    assert (
        let_in(queues, *(PodGroupCandidate(one, GroupPodCounts(), priority) for one, priority in candidates))
        == expected
    )


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from(["q", "p"]), st.sampled_from(["Pending", "Inqueue"])), max_size=12
    ),
    st.integers(0, 12),
    st.integers(0, 12),
)
def test_what_is_let_in_never_asks_for_more_than_queues_may_take(
    sizes: list[tuple[int, str, str]], limit: int, above: int
) -> None:
    queues = [queue("root"), queue("up", above), queue("q", limit, "up"), queue("p", parent="up")]
    groups = [group(f"g{at}", size, queue=name, phase=phase) for at, (size, name, phase) in enumerate(sizes)]
    decision = enqueue(QueueTree(queues), [PodGroupCandidate(one, GroupPodCounts()) for one in groups])
    taken = {"q": 0, "p": 0}
    for size, name, phase in sizes:
        if phase == "Inqueue":
            taken[name] += size
    before = dict(taken)
    for one, (size, name, _) in zip(groups, sizes, strict=True):
        if one.metadata.key in decision.enqueued:
            taken[name] += size
    if taken["q"] > before["q"]:
        assert taken["q"] <= limit
    if taken != before:
        assert sum(taken.values()) <= above
    for one, (size, name, _) in zip(groups, sizes, strict=True):
        if one.metadata.key in decision.refused:
            assert sum(taken.values()) + size > above or (name == "q" and taken["q"] + size > limit)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.integers(1, 3), max_size=6), st.integers(0, 12), st.integers(0, 6), st.integers(0, 3))
def test_a_gang_goes_whole_to_its_minimum_or_not_and_never_beyond_its_queue(
    sizes: list[int], limit: int, least: int, there: int
) -> None:
    tree = QueueTree([queue("q", limit), queue("root")])
    pods = [pod(f"p{at}", size) for at, size in enumerate(sizes)]
    usage: Usage = {}
    chosen, refusal = choose_pods(tree, group("g", least=least), pods, there, usage)
    held = sum(one.requests()[GPUS] for one in chosen)
    assert held <= limit
    assert usage.get("q", {}).get(GPUS, 0) == held
    if refusal is None:
        assert len(chosen) == len(pods)
    elif chosen:
        assert there + len(chosen) >= least


def test_the_minimum_of_each_role_goes_first() -> None:
    tree = QueueTree([queue("q", 2), queue("root")])
    pods = [pod("a", role="worker"), pod("b", role="worker"), pod("z", role="master")]
    gang = group("g", least=2, minTaskMember={"master": 1, "worker": 1})
    chosen, _ = choose_pods(tree, gang, pods, 0, {})
    assert [one.metadata.name for one in chosen] == ["a", "z"]


def test_a_gang_that_can_never_be_whole_keeps_nothing_from_others() -> None:
    broken = PodGroupCandidate(group("a", 4, phase="Inqueue", least=2), GroupPodCounts({"Failed": 1, "Pending": 1}))
    whole = PodGroupCandidate(group("a", 4, phase="Inqueue", least=2), GroupPodCounts({"Pending": 2}))
    other = PodGroupCandidate(group("b", 2), GroupPodCounts())
    assert let_in([queue("q", 4)], broken, other) == {"b"}
    assert let_in([queue("q", 4)], whole, other) == set()


# -- phases and words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pods", "phase", "expected"),
    [
        ([], "Pending", "Pending"),
        ([], "Inqueue", "Inqueue"),
        ([pod("a", node="n", phase="Running"), pod("b", node="n", phase="Running")], "Inqueue", "Running"),
        ([pod("a", node="n"), pod("b", node="n")], "Inqueue", "Running"),
        ([pod("a", node="n", phase="Running"), pod("b")], "Running", "Unknown"),
        ([pod("a", node="n", phase="Succeeded"), pod("b", node="n", phase="Running")], "Running", "Running"),
        ([pod("a", node="n", phase="Succeeded"), pod("b", node="n", phase="Failed")], "Running", "Completed"),
        ([pod("a"), pod("b")], "Running", "Pending"),
    ],
)
def test_the_phase_follows_from_the_pods(pods: list[GroupPod], phase: str, expected: str) -> None:
    assert phase_of(group("g", least=2, phase=phase), count_pods(pods), is_enqueued=False) == expected


def test_too_few_of_a_task_are_told_apart_from_too_few_at_all() -> None:
    gang = group("g", least=2, phase="Inqueue", minTaskMember={"master": 1})
    verdict = assess(gang, count_pods([pod("a", role="worker"), pod("b", role="worker")]), None, is_enqueued=False)
    assert (verdict.reason, verdict.message) == (
        "NotEnoughPodsOfTask",
        "Not enough valid pods of each task for gang-scheduling",
    )


def test_roles_that_ask_for_more_than_the_whole_group_are_not_held_to() -> None:
    gang = group("g", least=1, phase="Inqueue", minTaskMember={"worker": 3})
    assert assess(gang, count_pods([pod("a", role="worker", node="n")]), None, is_enqueued=False).is_ready
