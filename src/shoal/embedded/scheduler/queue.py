"""Holds the pods that wait: active pods by priority and age, pods in backoff, and unschedulable pods.

An unschedulable pod is tried again after an event that may help (`activate`), at the earliest one second after its
first try, then two, up to ten; and after five minutes in any case. When the active queue is empty, pods in backoff are
tried early, until a few in a row are unschedulable.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from shoal.embedded.scheduler.pod_info import PodInfo

_SHORTEST_S, _LONGEST_S, _ANYWAY_S = 1.0, 10.0, 300.0
_EARLY_TRIES = 8


class QueuedPod:
    __slots__ = ("due_s", "has_failed", "order", "pod", "state", "tries", "wakes_s")

    def __init__(self, pod: PodInfo, order: int) -> None:
        self.pod = pod
        self.order = order
        self.tries = 0
        self.state = ""
        """ready, delayed, stuck, or empty while it is worked on."""
        self.due_s = 0.0
        """The earliest time of the next try."""
        self.wakes_s = 0.0
        """The time of the next try if no event comes before."""
        self.has_failed = False
        """Whether an error occurred: the pod stays in backoff."""


class PodQueue:
    def __init__(self) -> None:
        self._pods: dict[str, QueuedPod] = {}
        self._ready: list[tuple[int, float, int, str]] = []
        self._delayed: list[tuple[float, str]] = []
        self._soon: list[tuple[int, float, int, str]] = []
        """The same pods by priority; some may have left the state since."""
        self._stuck: set[str] = set()
        self._order = 0
        self._early = 0
        """The number of early tries left."""

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> PodInfo | None:
        waiting = self._pods.get(uid)
        return waiting.pod if waiting is not None else None

    def worked_on(self) -> list[PodInfo]:
        """Pods that were popped and have no result yet."""
        return [waiting.pod for waiting in self._pods.values() if not waiting.state]

    def put(self, pod: PodInfo) -> None:
        """Adds a new pod, or a changed one that may fit now."""
        waiting = self._pods.get(pod.uid)
        if waiting is None:
            self._order += 1
            waiting = self._pods[pod.uid] = QueuedPod(pod, self._order)
        waiting.pod = pod
        if waiting.state in ("", "ready"):
            if not waiting.tries:
                self._make_ready(waiting)
            return
        self._make_ready(waiting)

    def refresh(self, pod: PodInfo) -> None:
        """Updates a pod whose change needs no new try."""
        waiting = self._pods.get(pod.uid)
        if waiting is not None:
            waiting.pod = pod

    def drop(self, uid: str) -> None:
        self._pods.pop(uid, None)
        self._stuck.discard(uid)

    def pop(self) -> PodInfo | None:
        """The next pod; the caller must then call `drop`, `mark_unschedulable` or `delay`."""
        while self._ready:
            *_, uid = heapq.heappop(self._ready)
            waiting = self._pods.get(uid)
            if waiting is not None and waiting.state == "ready":
                return self._taken(waiting)
        return self._pop_early() if self._early > 0 else None

    def _pop_early(self) -> PodInfo | None:
        while self._soon:
            *_, uid = heapq.heappop(self._soon)
            waiting = self._pods.get(uid)
            if waiting is not None and waiting.state == "delayed" and not waiting.has_failed:
                return self._taken(waiting)
        return None

    def _taken(self, waiting: QueuedPod) -> PodInfo:
        waiting.state = ""
        waiting.has_failed = False
        waiting.tries += 1
        return waiting.pod

    def mark_unschedulable(self, uid: str, now_s: float) -> None:
        """No node was feasible."""
        waiting = self._pods.get(uid)
        if waiting is None or waiting.state:
            return
        self._early = max(self._early - 1, 0)
        waiting.state = "stuck"
        waiting.due_s = now_s + _delay_s(waiting.tries)
        self._stuck.add(uid)
        self._wake_at(waiting, now_s + _ANYWAY_S)

    def delay(self, uid: str, now_s: float) -> None:
        """An error occurred: the pod is tried again later."""
        waiting = self._pods.get(uid)
        if waiting is not None and not waiting.state:
            waiting.has_failed = True
            self._back_off(waiting, now_s + _delay_s(waiting.tries))

    def activate(self, now_s: float, may_help: Callable[[PodInfo], bool] | None = None) -> None:
        """Activates unschedulable pods, or some of them, after an event that may help."""
        self._early = _EARLY_TRIES
        for uid in tuple(self._stuck):
            waiting = self._pods[uid]
            if may_help is None or may_help(waiting.pod):
                self._stuck.discard(uid)
                if waiting.due_s <= now_s:
                    self._make_ready(waiting)
                else:
                    self._back_off(waiting, waiting.due_s)

    def activate_due(self, now_s: float) -> None:
        """Activates pods whose backoff is over."""
        while (due_s := self.next_s()) is not None and due_s <= now_s:
            _, uid = heapq.heappop(self._delayed)
            self._make_ready(self._pods[uid])

    def next_s(self) -> float | None:
        """When the next backoff is over."""
        while self._delayed:
            due_s, uid = self._delayed[0]
            waiting = self._pods.get(uid)
            if waiting is not None and waiting.state in ("stuck", "delayed") and waiting.wakes_s == due_s:
                return due_s
            heapq.heappop(self._delayed)
        return None

    def _make_ready(self, waiting: QueuedPod) -> None:
        self._stuck.discard(waiting.pod.uid)
        waiting.state = "ready"
        heapq.heappush(self._ready, _rank(waiting))

    def _back_off(self, waiting: QueuedPod, due_s: float) -> None:
        waiting.state = "delayed"
        waiting.due_s = due_s
        self._wake_at(waiting, due_s)
        heapq.heappush(self._soon, _rank(waiting))
        if len(self._soon) > 2 * len(self._pods) + 64:
            self._soon = [_rank(one) for one in self._pods.values() if one.state == "delayed"]
            heapq.heapify(self._soon)

    def _wake_at(self, waiting: QueuedPod, wakes_s: float) -> None:
        waiting.wakes_s = wakes_s
        heapq.heappush(self._delayed, (wakes_s, waiting.pod.uid))


def _rank(waiting: QueuedPod) -> tuple[int, float, int, str]:
    pod = waiting.pod
    return (-pod.priority, pod.created, waiting.order, pod.uid)


def _delay_s(tries: int) -> float:
    return min(_SHORTEST_S * float(1 << min(tries - 1, 10)), _LONGEST_S) if tries else _SHORTEST_S
