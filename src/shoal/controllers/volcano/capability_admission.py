"""Admits the pods of enqueued groups as far as the capabilities of their queues allow, the longest waiting first.

The capability is checked a second time here: other groups may have come since a group was enqueued, and groups without
`minResources` were enqueued unconditionally. A gang is admitted whole up to its minimum or not at all. A gang that was
admitted and found no nodes returns its quota after a while, when others wait for the same queue.
"""

from __future__ import annotations

from collections.abc import Container

from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.controllers.volcano.group_cache import GroupCache
from shoal.controllers.volcano.group_members import GroupMembers
from shoal.engine.queues.disciplines.volcano.group_usage import choose_pods
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree

NODE_SEARCH_S = 10.0
"""How long a group may look for nodes while others wait for its queue."""


class RoundSchedule:
    def __init__(self) -> None:
        self.is_due = False
        self.next_s: float | None = None

    def begin(self) -> None:
        """Starts a round, which schedules the next one anew."""
        self.is_due, self.next_s = False, None

    def schedule(self, due_s: float | None) -> None:
        self.next_s = min((each for each in (self.next_s, due_s) if each is not None), default=None)

    def is_reached(self, now_s: float) -> bool:
        return self.is_due or (self.next_s is not None and now_s >= self.next_s)


class CapabilityAdmission:
    def __init__(
        self, scheduling: SchedulerState, cache: GroupCache, members: GroupMembers, schedule: RoundSchedule
    ) -> None:
        self._scheduling = scheduling
        self._cache = cache
        self._members = members
        self._schedule = schedule

    def run(self, tree: QueueTree, names: Container[str], now_s: float) -> None:
        """Admits pods of the groups `names`."""
        members = self._members
        usage = members.usage.usage(tree) if tree.has_limits else {}
        stuck: set[str] = set()
        for name, group in members.enqueued_groups():
            if name not in names:
                continue
            pods = [pod for key in members.held.of(name) if (pod := self._cache.pod(key)) is not None]
            active = len(tuple(members.usage.pods(name)))
            chosen, refusal = choose_pods(tree, group, pods, active, usage)
            for pod in chosen:
                members.admit("/".join(pod.metadata.key), now_s)
            if refusal is not None:
                stuck.update(queue.name for queue in tree.path_to_root(group.queue))
        if stuck:
            self.requeue_stuck(tree, stuck, now_s)

    def requeue_stuck(self, tree: QueueTree, stuck: Container[str], now_s: float) -> None:
        """Requeues groups that are charged to these queues and have no node yet."""
        members, pending = self._members, self._scheduling.cluster.pending
        for group in members.usage.groups():
            admitted_s = members.admitted_s.get(group)
            if admitted_s is None or all(one.name not in stuck for one in tree.path_to_root(members.queue_of(group))):
                continue
            if not all(pod in pending for pod in members.usage.pods(group)):
                continue
            if now_s < admitted_s + NODE_SEARCH_S:
                self._schedule.schedule(admitted_s + NODE_SEARCH_S)
                continue
            members.requeue(group)
            self._schedule.is_due = True
