"""Decisions about Volcano's groups without a server: admission, placement, messages."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.volcano_objects import group, pod, queue
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.events import GroupSeen, NodeFacts, NodeSeen, PodArrived
from shoal.engine.groups import GroupFacts
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.profile import NO_PREFERENCES
from shoal.engine.queues.disciplines.volcano.configuration import DEFAULT
from shoal.engine.queues.disciplines.volcano.discipline import Volcano
from shoal.engine.queues.disciplines.volcano.group_phases import assess, phase_of
from shoal.engine.queues.disciplines.volcano.known_jobs import KnownJobs
from shoal.engine.queues.disciplines.volcano.objects import GroupPod, GroupStatus, Queue, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.pod_counts import count_pods

# -- who is let in ----------------------------------------------------------------------------------------------------


class Groups:
    """What the action `enqueue` admits of groups, each with a priority and with so many pods."""

    def __init__(self, queues: list[Queue], groups: Sequence[tuple[QueuedPodGroup, int]], pods: int = 0) -> None:
        intake = Intake(Cluster())
        intake.apply(NodeSeen(NodeFacts("n", {"cpu": 1000, "memory": 1 << 30, "pods": 100}, gpus=100)))
        for one, priority in groups:
            name = "/".join(one.metadata.key)
            intake.apply(GroupSeen(GroupFacts(name, one.spec.min_member, priority=priority)))
            for at in range(pods):
                intake.apply(PodArrived(f"{name}-{at}", Ask(), who=PodIdentity(group=name)))
        known = KnownJobs([*queues, queue("root")], [one for one, _ in groups])
        actions = msgspec.structs.replace(DEFAULT, actions=("enqueue",))
        discipline = Volcano(known.facts, actions, known.admit)
        placement = Placement(intake.cluster, NO_PREFERENCES)
        cycle(intake.cluster, placement, now_s=0, seed=0, steps=discipline.steps())
        waiting = [one for one, _ in groups if one.is_waiting]
        self.admitted = {one.metadata.name for one in waiting if known.is_admitted("/".join(one.metadata.key))}


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
            {"b"},
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
    assert Groups(queues, candidates).admitted == expected


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
    queues = [queue("up", above), queue("q", limit, "up"), queue("p", parent="up")]
    groups = [group(f"g{at}", size, queue=name, phase=phase) for at, (size, name, phase) in enumerate(sizes)]
    admitted = Groups(queues, [(one, 0) for one in groups]).admitted
    taken = {"q": 0, "p": 0}
    for size, name, phase in sizes:
        if phase == "Inqueue":
            taken[name] += size
    before = dict(taken)
    for one, (size, name, _) in zip(groups, sizes, strict=True):
        if one.metadata.name in admitted:
            taken[name] += size
    if taken["q"] > before["q"]:
        assert taken["q"] <= limit
    if taken != before:
        assert sum(taken.values()) <= above
    for one, (size, name, _) in zip(groups, sizes, strict=True):
        if one.is_waiting and one.metadata.name not in admitted:
            assert sum(taken.values()) + size > above or (name == "q" and taken["q"] + size > limit)


def test_a_gang_that_can_never_be_whole_keeps_nothing_from_others() -> None:
    whole = group("a", 4, phase="Inqueue", least=2)
    broken = msgspec.structs.replace(whole, status=GroupStatus("Inqueue", failed=1))
    other = group("b", 2)
    assert Groups([queue("q", 4)], [(broken, 0), (other, 0)], pods=1).admitted == {"b"}
    assert Groups([queue("q", 4)], [(whole, 0), (other, 0)], pods=1).admitted == set()


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
