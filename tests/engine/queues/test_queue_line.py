"""The line of one cluster queue: who is next, and what parking and waking do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shoal.engine.queues.facts import PodSet, WorkloadFacts
from shoal.engine.queues.pending_workloads import PendingWorkloads
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.workloads import PendingWorkload, QueueingKey, totals_of

TOLD = (Wait.QUOTA, "no room")


def waiting(
    name: str, *, priority: int = 0, stamp: float = 0.0, shape: bytes = b"one", queue: str = "ns/lq"
) -> PendingWorkload:
    facts = WorkloadFacts(f"ns/{name}", queue, priority, stamp, name, (PodSet(),))
    return PendingWorkload(facts, totals_of(facts), stamp, label_key=QueueingKey(priority, shape, queue))


def line_of(*workloads: PendingWorkload, strict: bool = False) -> PendingWorkloads:
    line = PendingWorkloads(is_strict=strict)
    for each in workloads:
        line.add(each)
    return line


def drained(line: PendingWorkloads) -> list[str]:
    names = []
    while (head := line.pop()) is not None:
        names.append(head.facts.uid)
        line.admitted()
    return names


def test_the_highest_priority_goes_first_and_the_oldest_among_equals() -> None:
    line = line_of(waiting("young", stamp=2), waiting("old", stamp=1), waiting("urgent", priority=9, stamp=3))
    assert drained(line) == ["urgent", "old", "young"]


def test_equal_in_all_else_the_uid_decides() -> None:
    assert drained(line_of(waiting("b"), waiting("a"), waiting("c"))) == ["a", "b", "c"]


def test_a_form_that_was_turned_away_is_parked_as_a_whole() -> None:
    line = line_of(waiting("first"), waiting("like-it", stamp=1), waiting("other", stamp=2, shape=b"two"))
    line.pop()
    line.park(TOLD, whole_form=True)
    assert not line.is_active("ns/first")
    assert not line.is_active("ns/like-it")
    assert line.reported_of("ns/like-it") == TOLD
    assert drained(line) == ["other"]


def test_one_that_is_turned_away_for_itself_leaves_its_like_active() -> None:
    line = line_of(waiting("first"), waiting("like-it", stamp=1))
    line.pop()
    line.park(TOLD, whole_form=False)
    assert drained(line) == ["like-it"]


def test_waking_restores_the_order() -> None:
    line = line_of(waiting("a"), waiting("b", stamp=1), waiting("c", stamp=2, shape=b"two"))
    line.pop()
    line.park(TOLD, whole_form=False)
    line.pop()
    line.park(TOLD, whole_form=True)
    assert line.wake()
    assert drained(line) == ["a", "b", "c"]


def test_a_newcomer_of_a_parked_form_joins_it_unless_it_is_older() -> None:
    line = line_of(waiting("first", stamp=5))
    line.pop()
    line.park(TOLD, whole_form=True)
    assert not line.add(waiting("younger", stamp=6))
    assert line.pop() is None
    assert line.add(waiting("older", stamp=4))
    assert drained(line)[0] == "older"


def test_whoever_others_are_preempted_for_stays_first_unless_the_queue_is_strict() -> None:
    for strict, first in ((False, "waits"), (True, "urgent")):
        line = line_of(waiting("waits"), strict=strict)
        line.pop()
        line.back(sticky=True)
        line.add(waiting("urgent", priority=9))
        head = line.pop()
        assert head is not None
        assert head.facts.uid == first


def test_with_usage_the_local_queue_that_used_less_goes_before_priority() -> None:
    line = line_of(waiting("greedy", priority=9, queue="ns/a"), waiting("modest", queue="ns/b", stamp=9))
    head = line.pop({"ns/a": 10.0, "ns/b": 1.0}.__getitem__)
    assert head is not None
    assert head.facts.uid == "modest"


def test_a_workload_that_left_is_never_head() -> None:
    line = line_of(waiting("a"), waiting("b", stamp=1), waiting("c", stamp=2, shape=b"two"))
    assert line.remove("ns/a")
    assert not line.remove("ns/a")
    assert drained(line) == ["b", "c"]
    assert len(line) == 0


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "admit", "back", "park", "park-one", "wake"]),
        st.integers(0, 7),
        st.integers(0, 2),
        st.integers(0, 2),
        st.sampled_from([b"one", b"two"]),
    ),
    max_size=40,
)


@given(STEPS)
def test_in_any_turmoil_the_head_is_the_first_of_those_that_are_active(
    steps: list[tuple[str, int, int, int, bytes]],
) -> None:
    line = PendingWorkloads(is_strict=True)
    there: dict[str, PendingWorkload] = {}
    for what, name, priority, stamp, shape in steps:
        each = waiting(f"w{name}", priority=priority, stamp=stamp, shape=shape)
        if what == "add" and each.key not in there:
            line.add(each)
            there[each.key] = each
        elif what == "remove":
            assert line.remove(each.key) == (there.pop(each.key, None) is not None)
        elif what == "wake":
            assert line.wake() == bool(there)
            assert all(line.is_active(key) for key in there)
        elif what in {"admit", "back", "park", "park-one"}:
            active = [found for found in there.values() if line.is_active(found.key)]
            active.sort(key=lambda found: (-found.facts.priority, found.stamp_s, found.facts.uid))
            head = line.pop()
            assert head is (active[0] if active else None)
            if head is None:
                continue
            if what == "admit":
                line.admitted()
                del there[head.key]
            elif what == "back":
                line.back()
            else:
                line.park(TOLD, whole_form=what == "park")
                assert not line.is_active(head.key)
    assert {found.key for found, _ in line.each()} == set(there)
    assert len(line) == len(there)
