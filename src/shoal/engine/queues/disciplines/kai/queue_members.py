"""Gives pods and gangs the queue of KAI that their labels name, as events on their way into the facts.

A pod that names a queue and no group is a group of its own, as KAI's podgrouper has it. A gang of another project, or
one that its owner declares, is in the queue that its pods name. A PodGroup in KAI's default queue is in no queue as
long as that queue does not exist: KAI's installation creates it without limits.

The same for manifests and for a running cluster.
"""

from __future__ import annotations

from msgspec.structs import replace

from shoal.api.groups.kai import QUEUE_LABEL
from shoal.engine.events import Event, GroupGone, GroupSeen, PodArrived, PodBound, PodGone
from shoal.engine.groups import GroupFacts

DEFAULT_QUEUE = "default-queue"


class QueueMembers:
    def __init__(self, *, has_default: bool = False) -> None:
        """`has_default`: whether KAI's default queue exists."""
        self._has_default = has_default
        self._alone: dict[str, GroupFacts] = {}
        """Pods that are groups of their own, as they were reported."""
        self._named: dict[str, str] = {}
        """Gang -> the queue that its pods name."""
        self._groups: dict[str, GroupFacts] = {}
        """Gangs as they were seen, if they are in no queue of their own, or in the default one."""

    def translated(self, event: Event) -> list[Event]:
        """The events in place of one."""
        if isinstance(event, PodArrived | PodBound):
            return self._pod(event)
        if isinstance(event, GroupSeen):
            return [GroupSeen(self._in_queue(event.group))]
        if isinstance(event, GroupGone):
            self._groups.pop(event.name, None)
            self._named.pop(event.name, None)
        elif isinstance(event, PodGone) and event.key in self._alone:
            del self._alone[event.key]
            return [event, GroupGone(event.key)]
        return [event]

    def put_default(self, *, exists: bool) -> list[Event]:
        """The events after the default queue was created or deleted."""
        if exists == self._has_default:
            return []
        self._has_default = exists
        groups = [group for group in self._groups.values() if group.queue == DEFAULT_QUEUE]
        return [GroupSeen(self._in_queue(group)) for group in groups]

    def _pod(self, event: PodArrived | PodBound) -> list[Event]:
        who = event.who
        queue = dict(who.traits.labels).get(QUEUE_LABEL, "")
        if not queue:
            return self._left_alone(event)
        if not who.group:
            facts = GroupFacts(event.key, 1, is_preemptible=who.is_preemptible, queue=queue)
            grouped = replace(event, who=replace(who, group=event.key))
            if self._alone.get(event.key) == facts:
                return [grouped]
            self._alone[event.key] = facts
            return [GroupSeen(facts), grouped]
        found = self._left_alone(event)
        if self._named.get(who.group) != queue:
            self._named[who.group] = queue
            if (group := self._groups.get(who.group)) is not None:
                found.insert(0, GroupSeen(self._in_queue(group)))
        return found

    def _left_alone(self, event: PodArrived | PodBound) -> list[Event]:
        """The pod is in a group by now, or names no queue."""
        if event.key not in self._alone:
            return [event]
        del self._alone[event.key]
        return [event, GroupGone(event.key)]

    def _in_queue(self, group: GroupFacts) -> GroupFacts:
        if group.queue and group.queue != DEFAULT_QUEUE:
            self._groups.pop(group.name, None)
            return group
        self._groups[group.name] = group
        if group.queue:
            return group if self._has_default else replace(group, queue="")
        return group if group.unreadable else replace(group, queue=self._named.get(group.name, ""))
