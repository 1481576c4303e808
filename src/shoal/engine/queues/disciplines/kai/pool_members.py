"""Sends the gangs of KAI's queues to the nodes of their node pools, as events on their way into the facts.

A gang is in the pool that its PodGroup names by the label, else in that of its pods. Where shards divide the cluster,
its pods may be placed on nodes of the pool only, by the node preferences of the shard. So every explanation of a pod
that fits nowhere names the pool as it names other conditions about nodes.

Events come after `QueueMembers`, which knows the gang and the queue of every pod. Without shards they pass unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from shoal.engine.events import Event, GroupGone, GroupSeen, PodArrived, PodBound, PodGone
from shoal.engine.groups import GroupFacts
from shoal.engine.queues.disciplines.kai.node_pools import NodePool, NodePools


class PoolMembers:
    def __init__(self, pools: NodePools | None = None) -> None:
        """None: the cluster is not divided."""
        self._pools = pools
        self._groups: dict[str, GroupFacts] = {}
        """Gangs in queues, as they were reported."""
        self._named: dict[str, str] = {}
        """Gang -> the pool that its pods name, if they name one."""
        self._waiting: dict[str, dict[str, PodArrived]] = {}
        """Gang -> its pods that wait, as they were reported, where the cluster is divided."""
        self._gang_of: dict[str, str] = {}

    def put_pools(self, pools: NodePools | None) -> list[Event]:
        """The events after the shards changed. All pods have to be reported again after them."""
        self._pools = pools
        self._waiting.clear()
        self._gang_of.clear()
        self._named.clear()
        return [GroupSeen(group) for group in self._groups.values()]

    def translated(self, events: Iterable[Event]) -> list[Event]:
        return [found for event in events for found in self._one(event)]

    def _one(self, event: Event) -> list[Event]:
        if isinstance(event, GroupSeen):
            return self._group(event.group)
        if isinstance(event, GroupGone):
            self._groups.pop(event.name, None)
            self._named.pop(event.name, None)
        elif self._pools is None:
            return [event]
        elif isinstance(event, PodArrived | PodBound):
            return self._pod(event)
        elif isinstance(event, PodGone):
            self._waits_no_more(event.key)
        return [event]

    def _group(self, group: GroupFacts) -> list[Event]:
        before = self._groups.get(group.name)
        if group.queue:
            self._groups[group.name] = group
        else:
            self._groups.pop(group.name, None)
        if self._pools is None:
            return [GroupSeen(group)]
        is_same = before is not None and group.queue and self._own_pool(before) == self._own_pool(group)
        waiting = () if is_same else self._waiting.get(group.name, {}).values()
        return [self._seen(group), *(self._in_pool(pod) for pod in waiting)]

    def _pod(self, event: PodArrived | PodBound) -> list[Event]:
        name = event.who.group
        if not name:
            return [event]
        self._waits_no_more(event.key)
        if isinstance(event, PodArrived):
            self._waiting.setdefault(name, {})[event.key] = event
            self._gang_of[event.key] = name
        pool = dict(event.who.traits.labels).get(self._pools.label, "") if self._pools is not None else ""
        if pool == self._named.get(name, ""):
            return [self._in_pool(event)]
        self._named[name] = pool
        group = self._groups.get(name)
        if group is None or self._own_pool(group):
            return [self._in_pool(event)]
        # All pods of a gang go to one pool.
        others = [pod for key, pod in self._waiting.get(name, {}).items() if key != event.key]
        return [self._seen(group), self._in_pool(event), *map(self._in_pool, others)]

    def _seen(self, group: GroupFacts) -> GroupSeen:
        return GroupSeen(replace(group, node_pool=self._pool_of(group)) if group.queue else group)

    def _pool_of(self, group: GroupFacts) -> str:
        return self._own_pool(group) or self._named.get(group.name, "")

    def _own_pool(self, group: GroupFacts) -> str:
        """The one that its PodGroup names."""
        return dict(group.labels).get(self._pools.label, "") if self._pools is not None else ""

    def _in_pool(self, event: PodArrived | PodBound) -> PodArrived | PodBound:
        """The pod, with the nodes of its pool only."""
        group = self._groups.get(event.who.group)
        if group is None or self._pools is None:
            return event
        pool = self._pool_of(group)
        rule = replace(event.ask.nodes, always=(*event.ask.nodes.always, NodePool(pool, self._pools.label).requirement))
        profile = self._pools.profiles.get(pool) or event.ask.profile
        return replace(event, ask=replace(event.ask, nodes=rule, profile=profile))

    def _waits_no_more(self, pod: str) -> None:
        gang = self._gang_of.pop(pod, None)
        if gang is not None:
            waiting = self._waiting[gang]
            del waiting[pod]
            if not waiting:
                del self._waiting[gang]
