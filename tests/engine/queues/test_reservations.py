"""Reservations: who is first and waits gets a start, and nothing delays it."""

from __future__ import annotations

import heapq

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from build.queues import admitted, cluster_queue, queues, workload
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact

ON = Settings(reservations=True)


def kueue(*facts: Fact | WorkloadFacts, settings: Settings = ON) -> Kueue:
    held = [each for each in facts if not isinstance(each, WorkloadFacts) or each.admission is not None]
    found = Kueue(queues(*held, settings=settings))
    for each in facts:
        if isinstance(each, WorkloadFacts) and each.admission is None:
            found.put_workload(each, 0.0)
    return found


def lasting(seconds: float, facts: WorkloadFacts) -> WorkloadFacts:
    return replace(facts, duration_s=seconds)


def started(found: Kueue, now: float) -> list[str]:
    return [each.workload.removeprefix("default/") for done in found.run(now) for each in done.admitted]


def fleet(*more: WorkloadFacts, settings: Settings = ON, strict: bool = False) -> Kueue:
    """Eight GPUs, six of them busy for another hundred seconds, and a gang that wants all eight."""
    return kueue(
        cluster_queue("a", strict=strict, gpu=8),
        admitted(lasting(100, workload("runs", "a", gpu=6)), "a"),
        workload("gang", "a", gpu=8, priority=5),
        *more,
        settings=settings,
    )


def test_the_gang_is_promised_the_moment_at_which_room_will_be() -> None:
    found = fleet()
    found.run(0)
    assert found.reservations is not None
    nominated = found.reservations.of("default/gang")
    assert nominated is not None
    assert nominated.start_s == 100.0
    assert nominated.ending == ("default/runs",)


def test_short_work_runs_in_the_gap_and_long_work_does_not() -> None:
    short, long = lasting(90, workload("short", "a", gpu=1)), lasting(200, workload("long", "a", gpu=1, created=1))
    found = fleet(short, long)
    assert started(found, 0) == ["short"]
    why = {each.workload: each for each in found.states()}
    assert why["default/long"].why is Wait.RESERVED
    assert "default/gang" in why["default/long"].message
    assert "100 s" in why["default/long"].message


def test_work_of_unknown_length_does_not_run_in_the_gap() -> None:
    assert started(fleet(workload("unknown", "a", gpu=1)), 0) == []


def test_without_reservations_small_work_passes_the_gang() -> None:
    assert started(fleet(workload("unknown", "a", gpu=1), settings=Settings()), 0) == ["unknown"]


def test_behind_a_strict_head_with_a_start_the_gap_is_used() -> None:
    short = lasting(90, workload("short", "a", gpu=1))
    assert started(fleet(short, strict=True), 0) == ["short"]
    assert started(fleet(short, strict=True, settings=Settings()), 0) == []


def test_what_leaves_enough_beside_the_gang_may_run_as_long_as_it_likes() -> None:
    found = kueue(
        cluster_queue("a", gpu=8),
        admitted(lasting(100, workload("runs", "a", gpu=6)), "a"),
        workload("gang", "a", gpu=6, priority=5),
        workload("beside", "a", gpu=2),
    )
    assert started(found, 0) == ["beside"]


def test_nothing_is_promised_while_nobody_knows_when_room_will_be() -> None:
    found = kueue(
        cluster_queue("a", gpu=8),
        admitted(workload("runs", "a", gpu=6), "a"),
        workload("gang", "a", gpu=8, priority=5),
        workload("small", "a", gpu=1),
    )
    assert started(found, 0) == ["small"]


def test_what_its_like_took_before_is_expected_of_the_next() -> None:
    found = kueue(cluster_queue("a", gpu=8), workload("first", "a", gpu=6))
    assert started(found, 0) == ["first"]
    found.drop_workload("default/first", 40, finished=True)
    assert found.durations.expected_s(workload("second", "a", gpu=6)) == 40.0


def test_a_more_important_newcomer_is_not_held_up() -> None:
    found = fleet(workload("urgent", "a", gpu=1, priority=9))
    assert started(found, 0) == ["urgent"]


WORK = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 60), st.integers(0, 3)), min_size=1, max_size=12)


@given(WORK)
def test_a_promised_start_is_kept(work: list[tuple[int, int, int]]) -> None:
    """Where all durations are known and true, the first promise a workload got while nobody more important came is
    never broken."""
    found = kueue(cluster_queue("a", gpu=8))
    assert found.reservations is not None
    for index, (gpus, seconds, priority) in enumerate(work):
        found.put_workload(
            lasting(seconds, workload(f"w{index}", "a", gpu=gpus, priority=priority, created=index)), 0.0
        )
    now, ends, promises = 0.0, list[tuple[float, str]](), dict[str, float]()
    begun = set[str]()
    for _ in range(10 * len(work)):
        for done in found.run(now):
            for each in done.admitted:
                length = found.queues.held[each.workload].facts.duration_s
                assert length is not None
                assert now <= promises.get(each.workload, now)
                begun.add(each.workload)
                heapq.heappush(ends, (now + length, each.workload))
        for _, promise in found.reservations.by_root.values():
            promises.setdefault(promise.workload, promise.start_s)
            assert promise.start_s <= promises[promise.workload]
        if not ends:
            break
        now, gone = heapq.heappop(ends)
        found.drop_workload(gone, now)
        while ends and ends[0][0] == now:
            found.drop_workload(heapq.heappop(ends)[1], now)
    assert len(begun) == len(work)
