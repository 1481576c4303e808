"""Tracks the pods of groups: held back from the scheduling loop's facts, or in the facts and charged to their queue.

Guarantees: the contents follow from the caches and the facts, so they can be rebuilt at any time, after a fault as
after a restart.

Rejected: repairing what a fault may have left undone. The next fault would leave something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.controllers.volcano.group_cache import GroupCache
from shoal.controllers.volcano.names import JOB_QUEUE, SCHEDULER
from shoal.engine.events import PodArrived, PodBound, PodGone
from shoal.engine.queues.disciplines.volcano.group_usage import GroupUsage
from shoal.engine.queues.disciplines.volcano.objects import QueuedPodGroup


class HeldPods:
    def __init__(self) -> None:
        self._of: dict[str, dict[str, PodArrived]] = {}
        self._group_of: dict[str, str] = {}

    def __len__(self) -> int:
        """The number of groups."""
        return len(self._of)

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __contains__(self, group: str) -> bool:
        return group in self._of

    def of(self, group: str) -> Mapping[str, PodArrived]:
        return self._of.get(group, {})

    def group_of(self, pod: str) -> str:
        return self._group_of[pod]

    def event(self, pod: str) -> PodArrived | None:
        return self._of.get(self._group_of.get(pod, ""), {}).get(pod)

    def keep(self, group: str, event: PodArrived) -> None:
        self._of.setdefault(group, {})[event.key] = event
        self._group_of[event.key] = group

    def clear(self) -> None:
        self._of.clear()
        self._group_of.clear()

    def drop(self, pod: str) -> PodArrived | None:
        group = self._group_of.pop(pod, None)
        if group is None:
            return None
        event = self._of[group].pop(pod)
        if not self._of[group]:
            del self._of[group]
        return event


class GroupMembers:
    def __init__(self, scheduling: SchedulerState, cache: GroupCache, onward: Callable[[PodArrived], None]) -> None:
        """`onward` receives a pod that may be placed."""
        self._scheduling = scheduling
        self._cache = cache
        self._onward = onward
        self.held = HeldPods()
        self.usage = GroupUsage(self.queue_of)
        self.admitted_s: dict[str, float] = {}
        """When each group was admitted to scheduling."""
        self.requeues: dict[str, int] = {}
        """How often each group found no nodes."""
        self._stale: set[str] = set()
        """Groups that may no longer exist, with all their pods."""

    def queue_of(self, group: str) -> str:
        return self._cache.queues_of.get(group, "")

    # -- event handlers ---------------------------------------------------------------------------------------------

    def arrived(self, event: PodArrived) -> bool:
        """Returns whether the pod is held back."""
        if not self._is_ours(event):
            return False
        self.held.drop(event.key)
        self.held.keep(event.who.group, event)
        return True

    def bound(self, event: PodBound) -> None:
        self.held.drop(event.key)
        if event.key not in self.usage:
            self._charge(event)

    def gone(self, pod: str) -> bool:
        """Returns whether a queue has more free quota now."""
        self._stale.add(self.held.group_of(pod) if self.held.event(pod) else self.usage.group_of(pod))
        self.held.drop(pod)
        was_charged = pod in self.usage
        self.usage.release(pod)
        return was_charged

    def mark_stale(self, group: str) -> None:
        """The group may no longer exist."""
        self._stale.add(group)

    def drop_stale(self) -> None:
        """Drops groups of which neither the object nor a pod is left."""
        for name in self._stale if self._cache.has_groups else ():
            if name not in self.held and not self.usage.pods(name) and self._cache.group(name) is None:
                self._cache.queues_of.pop(name, None)
                self.admitted_s.pop(name, None)
                self.requeues.pop(name, None)
        self._stale.clear()

    # -- moves between held pods and the facts ----------------------------------------------------------------------

    def admit(self, key: str, now_s: float, *, is_placed: bool = False) -> None:
        """The pod is in the facts from now on; unless it has a node, the scheduler looks for one."""
        group, pod = self.held.group_of(key), self._cache.pod(key)
        self.usage.charge(group, key, pod.requests() if pod is not None else {})
        self.admitted_s[group] = now_s
        event = self.held.drop(key)
        if event is not None and not is_placed:
            self._onward(event)

    def requeue(self, group: str) -> None:
        """The group looked for nodes for too long, and is ordered behind others from now on."""
        self.admitted_s.pop(group)
        self.requeues[group] = self.requeues.get(group, 0) + 1
        for pod in self.usage.pods(group):
            self.hold_again(pod)

    def hold_again(self, pod: str) -> None:
        """Removes the pod from the facts and holds it back again."""
        group = self.usage.group_of(pod)
        self.usage.release(pod)
        self._scheduling.intake.apply(PodGone(pod))
        view = self._scheduling.watched.view(pod)
        if view is not None and isinstance(view.event, PodArrived):
            self.held.keep(group, view.event)

    def rebuild(self, *, holds: bool) -> None:
        """Rebuilds the contents from the pods and the facts; `holds`: pods without a node are held back."""
        self.held.clear()
        self.usage.clear()
        cluster = self._scheduling.cluster
        for event in self._scheduling.watched.reported():
            if event.key in cluster.pods:
                self._charge(event)
            elif holds and isinstance(event, PodArrived) and self._is_ours(event):
                if event.key in cluster.pending:
                    self._scheduling.intake.apply(PodGone(event.key))
                self.held.keep(event.who.group, event)

    def enqueued_groups(self) -> Iterator[tuple[str, QueuedPodGroup]]:
        """Enqueued groups with held pods, in the order in which they may continue."""
        found = []
        for name in self.held:
            group = self._cache.group(name) if name else None
            if group is not None and not group.is_waiting:
                first = next(iter(self.held.of(name).values()))
                order = (-first.priority, self.requeues.get(name, 0), group.metadata.created_s, name)
                found.append((order, name, group))
        for _, name, group in sorted(found, key=lambda one: one[0]):
            yield name, group

    # internals

    def _is_ours(self, event: PodArrived) -> bool:
        if not self._cache.has_groups:
            return False
        if event.who.group:
            if self._cache.group(event.who.group) is not None:
                return True
            pod = self._cache.pod(event.key)
            if pod is None or not pod.group:
                # The group belongs to another project.
                return False
        view = self._scheduling.watched.view(event.key)
        return view is not None and view.scheduler == SCHEDULER

    def _charge(self, event: PodArrived | PodBound) -> None:
        if not event.who.group or not self._cache.has_groups:
            return
        pod = self._cache.pod(event.key)
        if pod is not None and pod.group:
            self._cache.queues_of.setdefault(event.who.group, pod.metadata.annotations.get(JOB_QUEUE, ""))
            self.usage.charge(event.who.group, event.key, pod.requests())
