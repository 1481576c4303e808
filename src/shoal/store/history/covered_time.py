"""When it is known what all pods held, from snapshots of pods and Events at some moments.

From one snapshot of the pods to the next, all is known as long as Events reach back to the first: a pod that was bound
meanwhile has an Event. Time in which a pod held something that no snapshot of the pods has is unknown, and time in
which a pod ended and no Event says when.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from shoal.cost.records import Span
from shoal.store.history.pod_rows import RecordedPod
from shoal.store.history.snapshot_files import ClusterSnapshot, PodEvent

_BOUND, _ENDS = "Scheduled", "Killing"
_BEFORE_BINDING = frozenset({"FailedScheduling", "Preempted", "NotTriggerScaleUp", "TriggeredScaleUp"})
_LAST = chr(0x10FFFF)
_MORE_S = 10
"""What the kubelet takes beyond the grace period of a pod."""


class Coverage(NamedTuple):
    spans: list[tuple[int, int]]
    unseen: int
    """Pods that only Events name, and that were bound."""
    lost: int
    """Pods that ended at an unknown moment."""


def coverage(snapshots: Sequence[ClusterSnapshot]) -> Coverage:
    """`snapshots` in the order of their moments."""
    of_pods = [one for one in snapshots if one.pods is not None and one.is_of_all_namespaces]
    known = {uid for one in snapshots for uid in one.pods or ()}
    events = distinct_events(snapshots)
    moments = sorted((one.at_ms, uid) for uid, found in events.items() if uid not in known for one in found)
    spans: list[tuple[int, int]] = []
    unseen: set[str] = set()
    lost: set[str] = set()
    for before, after in pairwise(of_pods):
        end = _reached(before.at_ms, after.at_ms, snapshots)
        unknown: list[tuple[int, int]] = []
        first, last = (bisect_right(moments, (at, _LAST)) for at in (before.at_ms, after.at_ms))
        for uid in {uid for _, uid in moments[first:last]}:
            inside = [one for one in events[uid] if before.at_ms < one.at_ms <= after.at_ms]
            if (bound := _bound_ms(inside, before.at_ms)) is not None:
                unseen.add(uid)
                unknown.append((bound, after.at_ms))
        for uid, (pod, seen_ms) in _seen_last(snapshots, before.at_ms, after.at_ms).items():
            if uid not in (after.pods or {}) and not pod.is_finished:
                span = _lost(pod, events.get(uid, ()), seen_ms, after.at_ms)
                if span is not None:
                    unknown.append(span)
                    if span == (seen_ms, after.at_ms):
                        lost.add(uid)
        spans += without([(before.at_ms, end)], unknown)
    return Coverage(joined(spans), len(unseen), len(lost))


def distinct_events(snapshots: Iterable[ClusterSnapshot]) -> dict[str, list[PodEvent]]:
    """By the uid of the pod, in the order of their moments."""
    found: dict[str, set[PodEvent]] = {}
    for snapshot in snapshots:
        for one in snapshot.events or ():
            found.setdefault(one.uid, set()).add(one)
    return {uid: sorted(events, key=lambda one: (one.at_ms, one.reason)) for uid, events in found.items()}


def end_of(events: Iterable[PodEvent], after_ms: int, until_ms: int) -> int | None:
    """When the kubelet began to stop the containers of the pod, for the last time."""
    found = [one.at_ms for one in events if one.reason == _ENDS and after_ms < one.at_ms <= until_ms]
    return max(found, default=None)


def without(spans: Iterable[tuple[int, int]], removed: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    found = list(spans)
    for start, end in removed:
        found = [piece for span in found for piece in _cut(span, start, end)]
    return found


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif start < end:
            found.append((start, end))
    return found


def gaps_left(gaps: Iterable[Span], covered: Iterable[tuple[int, int]], end_ms: int) -> list[Span]:
    """What is still unknown of the gaps."""
    spans = [(one.start_ms, end_ms if one.end_ms is None else one.end_ms) for one in gaps]
    return [Span(start, end) for start, end in without(joined(spans), covered)]


def _reached(start_ms: int, end_ms: int, snapshots: Iterable[ClusterSnapshot]) -> int:
    """Until when Events are there without a hole, from a snapshot of the pods on."""
    reached = start_ms
    spans = [(one.events_since_ms, one.at_ms) for one in snapshots if one.events is not None]
    for since, until in sorted(spans):
        if since <= reached:
            reached = max(reached, min(until, end_ms))
    return reached


def _seen_last(snapshots: Iterable[ClusterSnapshot], start_ms: int, end_ms: int) -> dict[str, tuple[RecordedPod, int]]:
    """The pods of the interval, also those of snapshots of one namespace."""
    found: dict[str, tuple[RecordedPod, int]] = {}
    for one in snapshots:
        if start_ms <= one.at_ms < end_ms:
            found.update((uid, (pod, one.at_ms)) for uid, pod in (one.pods or {}).items())
    return found


def _bound_ms(events: Sequence[PodEvent], start_ms: int) -> int | None:
    """When a pod was bound, by its Events of an interval; None for one that was not."""
    if all(one.reason in _BEFORE_BINDING for one in events):
        return None
    return min((one.at_ms for one in events if one.reason == _BOUND), default=start_ms)


def _lost(pod: RecordedPod, events: Sequence[PodEvent], start_ms: int, end_ms: int) -> tuple[int, int] | None:
    """The time in which it may have held something, of a pod that is gone."""
    if pod.spec.node_name:
        ended = end_of(events, start_ms, end_ms)
        if ended is None:
            return start_ms, end_ms
        # Until its containers have ended it holds its devices.
        return ended, min(end_ms, ended + (pod.spec.termination_grace_period_seconds + _MORE_S) * 1000)
    bound = _bound_ms([one for one in events if start_ms < one.at_ms <= end_ms], start_ms)
    return None if bound is None else (bound, end_ms)


def _cut(span: tuple[int, int], start: int, end: int) -> Iterator[tuple[int, int]]:
    if end <= span[0] or start >= span[1]:
        yield span
        return
    if span[0] < start:
        yield span[0], start
    if end < span[1]:
        yield end, span[1]
