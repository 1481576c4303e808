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
    pending = PendingWorkloads(is_strict=strict)
    for each in workloads:
        pending.add(each)
    return pending


def drained(pending: PendingWorkloads) -> list[str]:
    names = []
    while (head := pending.pop()) is not None:
        names.append(head.facts.uid)
        pending.admitted()
    return names


def test_the_highest_priority_goes_first_and_the_oldest_among_equals() -> None:
    pending = line_of(waiting("young", stamp=2), waiting("old", stamp=1), waiting("urgent", priority=9, stamp=3))
    assert drained(pending) == ["urgent", "old", "young"]


def test_equal_in_all_else_the_uid_decides() -> None:
    assert drained(line_of(waiting("b"), waiting("a"), waiting("c"))) == ["a", "b", "c"]


def test_a_form_that_was_turned_away_is_parked_as_a_whole() -> None:
    pending = line_of(waiting("first"), waiting("like-it", stamp=1), waiting("other", stamp=2, shape=b"two"))
    pending.pop()
    pending.make_inadmissible(TOLD, whole_class=True)
    assert not pending.is_active("ns/first")
    assert not pending.is_active("ns/like-it")
    assert pending.reported_of("ns/like-it") == TOLD
    assert drained(pending) == ["other"]


def test_one_that_is_turned_away_for_itself_leaves_its_like_active() -> None:
    pending = line_of(waiting("first"), waiting("like-it", stamp=1))
    pending.pop()
    pending.make_inadmissible(TOLD, whole_class=False)
    assert drained(pending) == ["like-it"]


def test_waking_restores_the_order() -> None:
    pending = line_of(waiting("a"), waiting("b", stamp=1), waiting("c", stamp=2, shape=b"two"))
    pending.pop()
    pending.make_inadmissible(TOLD, whole_class=False)
    pending.pop()
    pending.make_inadmissible(TOLD, whole_class=True)
    assert pending.queue_inadmissible()
    assert drained(pending) == ["a", "b", "c"]


def test_a_newcomer_of_a_parked_form_joins_it_unless_it_is_older() -> None:
    pending = line_of(waiting("first", stamp=5))
    pending.pop()
    pending.make_inadmissible(TOLD, whole_class=True)
    assert not pending.add(waiting("younger", stamp=6))
    assert pending.pop() is None
    assert pending.add(waiting("older", stamp=4))
    assert drained(pending)[0] == "older"


def test_whoever_others_are_preempted_for_stays_first_unless_the_queue_is_strict() -> None:
    for strict, first in ((False, "waits"), (True, "urgent")):
        pending = line_of(waiting("waits"), strict=strict)
        pending.pop()
        pending.requeue(sticky=True)
        pending.add(waiting("urgent", priority=9))
        head = pending.pop()
        assert head is not None
        assert head.facts.uid == first


def test_with_usage_the_local_queue_that_used_less_goes_before_priority() -> None:
    pending = line_of(waiting("greedy", priority=9, queue="ns/a"), waiting("modest", queue="ns/b", stamp=9))
    head = pending.pop({"ns/a": 10.0, "ns/b": 1.0}.__getitem__)
    assert head is not None
    assert head.facts.uid == "modest"


def test_a_workload_that_left_is_never_head() -> None:
    pending = line_of(waiting("a"), waiting("b", stamp=1), waiting("c", stamp=2, shape=b"two"))
    assert pending.remove("ns/a")
    assert not pending.remove("ns/a")
    assert drained(pending) == ["b", "c"]
    assert len(pending) == 0


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
    pending = PendingWorkloads(is_strict=True)
    there: dict[str, PendingWorkload] = {}
    for what, name, priority, stamp, shape in steps:
        each = waiting(f"w{name}", priority=priority, stamp=stamp, shape=shape)
        if what == "add" and each.key not in there:
            pending.add(each)
            there[each.key] = each
        elif what == "remove":
            assert pending.remove(each.key) == (there.pop(each.key, None) is not None)
        elif what == "wake":
            assert pending.queue_inadmissible() == bool(there)
            assert all(pending.is_active(key) for key in there)
        elif what in {"admit", "back", "park", "park-one"}:
            active = [found for found in there.values() if pending.is_active(found.key)]
            active.sort(key=lambda found: (-found.facts.priority, found.stamp_s, found.facts.uid))
            head = pending.pop()
            assert head is (active[0] if active else None)
            if head is None:
                continue
            if what == "admit":
                pending.admitted()
                del there[head.key]
            elif what == "back":
                pending.requeue()
            else:
                pending.make_inadmissible(TOLD, whole_class=what == "park")
                assert not pending.is_active(head.key)
    assert {found.key for found, _ in pending.each()} == set(there)
    assert len(pending) == len(there)
