"""Records what queues use over time, and what the cluster had to offer, for fair shares that are based on time.

Amounts are whole numbers: what pods hold times the seconds for which they held it. They are kept in buckets of equal
length, so that what left the window is forgotten and the record stays bounded: at most four hundred buckets, whatever
the window. A record that is read back after a restart continues as if there had been none, for pods that run on: their
starts are known, and the time between is added to the first measurement.

Rejected: one decayed number per queue. It is smaller, but it knows no sliding window without decay, which is KAI's
default, and another half-life would need the history again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from shoal.engine.queues.disciplines.kai.fair_queues import EACH, NOTHING, Amounts3
from shoal.units.schedules import Schedule

SLIDING, TUMBLING, CRON = "sliding", "tumbling", "cron"
WEEK_S = 7 * 86_400.0
_MOST_BUCKETS = 200
_BUCKETS_PER_HALF_LIFE = 20
_HALF_LIVES = 20
"""What is older than so many half-lives counts less than a millionth, and is forgotten."""
LONGEST_CRON_S = 366 * 86_400.0
"""Of windows that follow a schedule: what is older is forgotten, so that the record stays bounded."""
_FAR_S = 1 << 40
Usage = dict[str, tuple[float, ...]]


class UsageWindow(msgspec.Struct, frozen=True):
    """Over which time use counts, and how fast it loses weight."""

    kind: str = SLIDING
    size_s: float = WEEK_S
    half_life_s: float = 0.0
    """0: all of the window counts alike."""
    first_s: float | None = None
    """When a tumbling window began; None: with the first measurement."""
    schedule: Schedule | None = None
    """When windows of the kind `cron` begin."""


class QueueUse(NamedTuple):
    """What one pod held in the queues of its path."""

    path: tuple[str, ...]
    amounts: Amounts3
    since_s: float
    until_s: float | None = None
    """When it ended; None if it runs on."""


class Bucket(msgspec.Struct, array_like=True):
    begin_s: int
    end_s: int
    until_s: int
    """Up to when it is measured."""
    capacity: list[int]
    use: dict[str, list[int]]

    @property
    def measured_s(self) -> int:
        return self.until_s - self.begin_s


class UsageState(msgspec.Struct):
    """All that is kept over a restart."""

    until_s: int
    """Up to when use was measured."""
    window_s: int
    """When the window began that is current in windows that tumble, or follow a schedule."""
    buckets: list[Bucket]


class UsageRecord:
    def __init__(self, window: UsageWindow, state: UsageState | None = None) -> None:
        self.window = window
        self.state = state

    def measure(self, uses: Iterable[QueueUse], capacity: Amounts3, now_s: float) -> None:
        """Add what pods held since the last measurement. The first one only begins the record."""
        now = math.floor(now_s)
        if self.state is None:
            first = self.window.first_s if self.window.kind == TUMBLING else None
            self.state = UsageState(now, now if first is None else min(now, math.floor(first)), [])
            return
        state = self.state
        if now <= state.until_s:
            return
        begin = max(state.until_s, now - math.ceil(self._horizon_s))
        if self.window.kind == CRON:
            # What was before the current window does not count, and there may be many windows in a long time.
            self._advance(state, now)
            begin = max(begin, min(state.window_s, now))
        whole, partial = _by_path(uses, begin, now)
        for bucket, start, end in self._segments(state, begin, now):
            _add(bucket.capacity, capacity, end - start)
            for path, amounts in whole.items():
                _add_path(bucket, path, amounts, end - start)
            for use in partial:
                until = now if use.until_s is None else math.floor(use.until_s)
                _add_path(bucket, use.path, use.amounts, min(end, until) - max(start, math.floor(use.since_s)))
        state.until_s = now
        self._advance(state, now)
        oldest = self._begin_s(now)
        state.buckets = [bucket for bucket in state.buckets if bucket.end_s > oldest]

    def forget_after(self, now_s: float) -> None:
        """Drop what was measured of a time that is still to come, by a clock that ran ahead."""
        state, now = self.state, math.floor(now_s)
        if state is None or now >= state.until_s:
            return
        state.buckets = [bucket for bucket in state.buckets if bucket.begin_s < now]
        last = state.buckets[-1] if state.buckets else None
        if last is not None and last.until_s > now:
            kept, measured = now - last.begin_s, last.measured_s
            last.capacity = [amount * kept // measured for amount in last.capacity]
            last.use = {name: [amount * kept // measured for amount in each] for name, each in last.use.items()}
            last.until_s = now
        state.until_s = now
        if self.window.kind != TUMBLING:
            state.window_s = min(state.window_s, now)
        self._advance(state, now)

    def usage(self) -> Usage:
        """Queue -> its use of each resource in the window, divided by the capacity in the window, at the time of the
        last measurement."""
        state = self.state
        if state is None:
            return {}
        begin = self._begin_s(state.until_s)
        used: dict[str, list[float]] = {}
        capacity = [0.0, 0.0, 0.0]
        for bucket in state.buckets:
            factor = self._weight(bucket, begin, state.until_s)
            for at in EACH:
                capacity[at] += bucket.capacity[at] * factor
            for queue, amounts in bucket.use.items():
                mine = used.setdefault(queue, [0.0, 0.0, 0.0])
                for at in EACH:
                    mine[at] += amounts[at] * factor
        return {
            queue: tuple(amounts[at] / capacity[at] if capacity[at] > 0 else 0.0 for at in EACH)
            for queue, amounts in sorted(used.items())
        }

    def make_coarser(self) -> None:
        """Join the shortest neighbours, an eighth of all buckets: the record takes less space, and what leaves a
        sliding window is cut less finely."""
        buckets = self.state.buckets if self.state is not None else []
        for _ in range(min(len(buckets) - 1, max(1, len(buckets) // 8))):
            at = min(range(len(buckets) - 1), key=lambda at: buckets[at + 1].end_s - buckets[at].begin_s)
            last, after = buckets[at], buckets.pop(at + 1)
            last.end_s, last.until_s = after.end_s, after.until_s
            _add(last.capacity, after.capacity, 1)
            for queue, amounts in after.use.items():
                _add(last.use.setdefault(queue, [0, 0, 0]), amounts, 1)

    # -- inside ------------------------------------------------------------------------------------------------------

    @property
    def _horizon_s(self) -> float:
        # A window that follows a schedule has no other size.
        size = LONGEST_CRON_S if self.window.kind == CRON else self.window.size_s
        half_life = self.window.half_life_s
        return min(size, _HALF_LIVES * half_life) if half_life > 0 else size

    @property
    def _bucket_s(self) -> int:
        length = self._horizon_s / _MOST_BUCKETS
        if self.window.half_life_s > 0:
            length = min(length, self.window.half_life_s / _BUCKETS_PER_HALF_LIFE)
        return max(1, math.ceil(length))

    def _segments(self, state: UsageState, begin: int, end: int) -> Iterator[tuple[Bucket, int, int]]:
        """The buckets of a time, each with the part of it that is in it."""
        buckets, length = state.buckets, self._bucket_s
        window_s = begin
        while begin < end:
            if not buckets or buckets[-1].end_s <= begin:
                if window_s <= begin:
                    window_s = self._next_window_s(begin)
                last_s = min((begin // length + 1) * length, window_s)
                buckets.append(Bucket(begin, max(begin + 1, last_s), begin, [0, 0, 0], {}))
            last = buckets[-1]
            until = min(end, last.end_s)
            last.until_s = until
            yield last, begin, until
            begin = until

    def _next_window_s(self, after: int) -> int:
        """When the next window begins: no bucket is in two of them."""
        window, state = self.window, self.state
        if window.kind == TUMBLING and window.size_s > 0 and state is not None:
            first = state.window_s if window.first_s is None else window.first_s
            return math.floor(first + ((after - first) // window.size_s + 1) * window.size_s)
        if window.kind == CRON and window.schedule is not None:
            due = window.schedule.next(datetime.fromtimestamp(after, UTC))
            return after + _FAR_S if due is None else math.floor(due.timestamp())
        return after + _FAR_S

    def _advance(self, state: UsageState, now: int) -> None:
        """Find the window that is current."""
        window = self.window
        if window.kind == TUMBLING and window.size_s > 0:
            first = state.window_s if window.first_s is None else window.first_s
            state.window_s = math.floor(first + (now - first) // window.size_s * window.size_s)
        elif window.kind == CRON and window.schedule is not None:
            begun_s = last_begin_s(window.schedule, state.window_s, now)
            state.window_s = state.window_s if begun_s is None else begun_s

    def _begin_s(self, now: int) -> float:
        """When what counts begins."""
        oldest = now - self._horizon_s
        if self.window.kind == SLIDING or self.state is None:
            return oldest
        return max(float(self.state.window_s), oldest)

    def _weight(self, bucket: Bucket, begin: float, now: int) -> float:
        """How much of a bucket counts: its part in the window, decayed. What is in it is taken as spread evenly."""
        start, end = max(begin, bucket.begin_s), bucket.until_s
        if end <= start:
            return 0.0
        half_life = self.window.half_life_s
        if half_life <= 0:
            return (end - start) / bucket.measured_s
        decayed: float = 0.5 ** ((now - end) / half_life) - 0.5 ** ((now - start) / half_life)
        return half_life / math.log(2) * decayed / bucket.measured_s


def last_begin_s(schedule: Schedule, after: int, now: int) -> int | None:
    """The last time of the schedule after one time and until another. The search goes back from the later one in steps
    that double, because a schedule only knows what comes next."""
    first = schedule.next(datetime.fromtimestamp(after, UTC))
    if first is None or first.timestamp() > now:
        return None
    length, found = 60, None
    while found is None:
        begin = max(after, now - length)
        due = schedule.next(datetime.fromtimestamp(begin, UTC))
        while due is not None and due.timestamp() <= now:
            found = math.floor(due.timestamp())
            due = schedule.next(due)
        length *= 2
    return found


def _by_path(uses: Iterable[QueueUse], begin: int, end: int) -> tuple[dict[tuple[str, ...], list[int]], list[QueueUse]]:
    """What was held all the time by path, and what was held for a part of it."""
    whole: dict[tuple[str, ...], list[int]] = {}
    partial: list[QueueUse] = []
    for use in uses:
        if math.floor(use.since_s) <= begin and (use.until_s is None or math.floor(use.until_s) >= end):
            _add(whole.setdefault(use.path, [0, 0, 0]), use.amounts, 1)
        else:
            partial.append(use)
    return whole, partial


def _add_path(bucket: Bucket, path: tuple[str, ...], amounts: Amounts3, seconds: int) -> None:
    if seconds > 0 and tuple(amounts) != NOTHING:
        for queue in path:
            _add(bucket.use.setdefault(queue, [0, 0, 0]), amounts, seconds)


def _add(to: list[int], amounts: Amounts3, times: int) -> None:
    for at in EACH:
        to[at] += amounts[at] * times
