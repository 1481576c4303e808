"""The queue of pods that wait, by the clock of the test: delays that double, early tries, and five minutes at most."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.embedded.scheduler.pod_info import PodInfo, PodRequest
from shoal.embedded.scheduler.queue import PodQueue

EARLY_TRIES = 8


def facts(name: str, priority: int = 0, created: float = 0.0) -> PodInfo:
    return PodInfo(uid=name, namespace="default", name=name, request=PodRequest(), priority=priority, created=created)


def queue_of(*pods: PodInfo) -> PodQueue:
    queue = PodQueue()
    for pod in pods:
        queue.put(pod)
    return queue


def popped(queue: PodQueue) -> list[str]:
    names = []
    while (pod := queue.pop()) is not None:
        names.append(pod.name)
    return names


def test_the_important_come_first_then_the_old_then_who_came_first() -> None:
    pods = [facts("young", 0, 9.0), facts("high", 5, 9.0), facts("old", 0, 1.0), facts("twin", 0, 1.0)]
    assert popped(queue_of(*pods)) == ["high", "old", "twin", "young"]


def test_a_pod_is_popped_once_and_known_until_it_is_dropped() -> None:
    queue = queue_of(facts("a"))
    assert popped(queue) == ["a"]
    assert [pod.name for pod in queue.worked_on()] == ["a"]
    queue.drop("a")
    assert not queue.worked_on()
    assert len(queue) == 0


def test_delays_double_from_one_second_to_ten() -> None:
    queue, now_s, waits = queue_of(facts("a")), 0.0, []
    for _ in range(7):
        assert popped(queue) == ["a"]
        queue.delay("a", now_s)
        due_s = queue.next_s()
        assert due_s is not None
        queue.activate_due(due_s - 0.01)
        assert popped(queue) == []
        waits.append(due_s - now_s)
        now_s = due_s
        queue.activate_due(now_s)
    assert waits == [1, 2, 4, 8, 10, 10, 10]


def test_without_a_place_it_waits_for_something_to_happen_or_five_minutes() -> None:
    queue = queue_of(facts("a"))
    queue.pop()
    queue.mark_unschedulable("a", 100.0)
    queue.activate_due(399.9)
    assert queue.next_s() == 400.0
    assert popped(queue) == []
    queue.activate_due(400.0)
    assert popped(queue) == ["a"]


def test_what_happens_after_its_delay_helps_it_at_once() -> None:
    queue = queue_of(facts("a"))
    queue.pop()
    queue.mark_unschedulable("a", 0.0)
    queue.activate(1.0)
    assert popped(queue) == ["a"]


def test_a_stir_reaches_only_those_whom_it_concerns() -> None:
    queue = queue_of(facts("a"), facts("b"))
    for name in popped(queue):
        queue.mark_unschedulable(name, 0.0)
    queue.activate(5.0, lambda pod: pod.name == "b")
    assert popped(queue) == ["b"]


def test_those_in_a_delay_are_tried_early_until_a_few_found_no_place() -> None:
    queue = queue_of(*(facts(f"p{number:02}") for number in range(20)))
    for name in popped(queue):
        queue.mark_unschedulable(name, 0.0)
    queue.activate(0.5)
    tried = []
    while (pod := queue.pop()) is not None:
        tried.append(pod.name)
        queue.mark_unschedulable(pod.uid, 0.5)
    assert tried == [f"p{number:02}" for number in range(EARLY_TRIES)]
    queue.activate_due(1.0)
    assert popped(queue) == [f"p{number:02}" for number in range(EARLY_TRIES, 20)]


def test_whoever_failed_waits_its_delay_out() -> None:
    queue = queue_of(facts("a"))
    queue.pop()
    queue.delay("a", 0.0)
    queue.activate(0.5)
    assert popped(queue) == []
    queue.activate_due(1.0)
    assert popped(queue) == ["a"]


def test_a_pod_that_changes_is_tried_at_once_and_as_it_is_now() -> None:
    queue = queue_of(facts("a"))
    queue.pop()
    queue.mark_unschedulable("a", 0.0)
    queue.put(facts("a", priority=7))
    found = queue.pop()
    assert found is not None
    assert found.priority == 7
    assert queue.pop() is None


steps = st.lists(
    st.tuples(st.sampled_from(["put", "pop", "stuck", "delay", "stir", "drop", "wait"]), st.integers(0, 4))
)


@settings(max_examples=examples(80), deadline=None)
@given(steps)
def test_whatever_happens_nobody_is_forgotten_and_nobody_is_worked_on_twice(found: list[tuple[str, int]]) -> None:
    queue, now_s, known, working = PodQueue(), 0.0, set[str](), set[str]()
    for what, number in found:
        uid = f"p{number}"
        if what == "put":
            queue.put(facts(uid))
            known.add(uid)
        elif what == "pop":
            pod = queue.pop()
            if pod is not None:
                assert pod.uid in known - working
                working.add(pod.uid)
        elif what in ("stuck", "delay") and uid in working:
            queue.mark_unschedulable(uid, now_s) if what == "stuck" else queue.delay(uid, now_s)
            working.discard(uid)
        elif what == "stir":
            queue.activate(now_s)
        elif what == "drop":
            queue.drop(uid)
            known.discard(uid)
            working.discard(uid)
        elif what == "wait":
            now_s += number
            queue.activate_due(now_s)
    queue.activate_due(now_s + 300)
    assert sorted(popped(queue)) == sorted(known - working)
    assert {pod.uid for pod in queue.worked_on()} == known
