"""Pods of groups are kept from the brain's facts until their queue has let the group in and has room for them.

A queue's capability holds here a second time: between the moment a group was let in and the moment its pods are placed
others may have come, and groups that name no least were let in unasked. A gang goes whole up to its minimum or not at
all. One that was let go and found no nodes gives its room back after a while, when others of its queue wait for it.

Nothing is remembered: after a restart pods arrive anew, and those that are bound say what is taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from shoal.controllers.volcano.absence import Presence
from shoal.controllers.volcano.group_room import GroupRoom, choose
from shoal.controllers.volcano.group_view import GroupView
from shoal.controllers.volcano.names import JOB_QUEUE, SCHEDULER
from shoal.controllers.volcano.queue_tree import QueueTree
from shoal.controllers.volcano.sights import GroupPod, PodGroup
from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, PodArrived, PodBound, PodGone
from shoal.engine.intake import Intake
from shoal.engine.plan import Place
from shoal.store.live.context import Context
from shoal.store.live.served import Served
from shoal.store.watched.sights import PodSight

PATIENCE_S = 10.0
"""How long a group may look for nodes while others wait for the room it takes of its queue."""


class Sights(Protocol):
    def sight(self, key: str) -> PodSight | None: ...


class Brain(Protocol):
    """What the desk asks of whoever holds it."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def intake(self) -> Intake: ...
    @property
    def world(self) -> Sights: ...

    def wake(self) -> None: ...


class VolcanoDesk:
    def __init__(
        self,
        context: Context,
        served: Served,
        brain: Brain,
        presence: Presence | None = None,
        onward: Callable[[PodArrived], None] | None = None,
    ) -> None:
        """`onward`: what becomes of a pod that may be placed; by default the facts take it."""
        self._brain = brain
        self._presence = presence
        self._onward = onward or brain.intake.apply
        self._kept: dict[str, dict[str, PodArrived]] = {}
        """Group (empty: none yet) -> pods that wait for it."""
        self._kept_in: dict[str, str] = {}
        self._released_s: dict[str, float] = {}
        self._recalls: dict[str, int] = {}
        self._is_due = False
        self._next_s: float | None = None
        self._view = GroupView(context, served, self._stir)
        self._room = GroupRoom(self._queue_of)

    # -- the protocol -----------------------------------------------------------------------------------------------

    def hear(self, event: Event) -> bool:
        if isinstance(event, PodArrived):
            return self._arrived(event)
        if isinstance(event, PodBound):
            self._bound(event)
        elif isinstance(event, PodGone):
            self._forget(event.key)
        return False

    def round(self, now_s: float) -> list[Place]:
        if not self._is_due and (self._next_s is None or now_s < self._next_s):
            return []
        self._is_due, self._next_s = False, None
        tree = self._view.tree()
        if not self._is_away():
            self._next_s = now_s + PATIENCE_S if self._kept else None
        elif tree is not None:
            self._let_go(tree, now_s)
        return []

    def next_s(self) -> float | None:
        return self._next_s

    @property
    def is_idle(self) -> bool:
        return not self._is_due

    async def synced(self) -> None:
        """What is let go and what is kept follows from queues and groups."""
        await self._view.synced()

    async def run(self) -> None:
        """It writes nothing: groups say for their pods why they wait."""
        await asyncio.Event().wait()

    # -- hearing ----------------------------------------------------------------------------------------------------

    def _stir(self, group: str = "") -> None:
        """A group changed, or queues did."""
        if not group or group in self._kept:
            self._is_due = True
            self._brain.wake()

    def _arrived(self, event: PodArrived) -> bool:
        cluster = self._brain.cluster
        if event.key in cluster.pods or event.key in cluster.pending or not self._is_away() or not self._is_ours(event):
            return False
        self._drop_kept(event.key)
        self._keep(event.who.group, event)
        self._is_due = True
        return True

    def _keep(self, group: str, event: PodArrived) -> None:
        self._kept.setdefault(group, {})[event.key] = event
        self._kept_in[event.key] = group

    def _is_ours(self, event: PodArrived) -> bool:
        if not self._view.has_groups:
            return False
        if event.who.group:
            if self._view.group(event.who.group) is not None:
                return True
            pod = self._view.pod(event.key)
            if pod is None or not pod.group:
                # A group of another project.
                return False
        sight = self._brain.world.sight(event.key)
        return sight is not None and sight.scheduler == SCHEDULER

    def _bound(self, event: PodBound) -> None:
        self._drop_kept(event.key)
        if not event.who.group or not self._view.has_groups or event.key in self._room:
            return
        pod = self._view.pod(event.key)
        if pod is not None and pod.group:
            self._view.queues_of.setdefault(event.who.group, pod.metadata.annotations.get(JOB_QUEUE, ""))
            self._room.hold(event.who.group, event.key, pod.requests())

    def _forget(self, pod: str) -> None:
        self._drop_kept(pod)
        if pod in self._room:
            self._room.leave(pod)
            self._is_due = bool(self._kept)

    def _drop_kept(self, pod: str) -> None:
        group = self._kept_in.pop(pod, None)
        if group is None:
            return
        del self._kept[group][pod]
        if not self._kept[group]:
            del self._kept[group]

    # -- letting go -------------------------------------------------------------------------------------------------

    def _let_go(self, tree: QueueTree, now_s: float) -> None:
        usage = self._room.usage(tree) if tree.has_limits else {}
        stuck: set[str] = set()
        for name, group in self._turns():
            kept = self._kept[name]
            pods = [pod for key in kept if (pod := self._view.pod(key)) is not None]
            there = len(tuple(self._room.pods(name)))
            chosen, refusal = choose(tree, group, pods, there, usage)
            for pod in chosen:
                self._release(name, "/".join(pod.metadata.key), pod)
                self._released_s[name] = now_s
            if refusal is not None:
                stuck.update(queue.name for queue in tree.upwards(group.queue))
        if stuck:
            self._recall(tree, stuck, now_s)

    def _turns(self) -> Iterator[tuple[str, PodGroup]]:
        """Groups that were let in and have pods here, in the order in which they may go on."""
        found = []
        for name, pods in self._kept.items():
            group = self._view.group(name) if name else None
            if group is not None and not group.is_waiting:
                first = next(iter(pods.values()))
                turn = (-first.priority, self._recalls.get(name, 0), group.metadata.created_s, name)
                found.append((turn, name, group))
        for _, name, group in sorted(found, key=lambda one: one[0]):
            yield name, group

    def _release(self, group: str, key: str, pod: GroupPod) -> None:
        event = self._kept[group][key]
        self._drop_kept(key)
        self._room.hold(group, key, pod.requests())
        self._onward(event)

    def _recall(self, tree: QueueTree, stuck: set[str], now_s: float) -> None:
        """Groups that hold room of these queues and have no node yet go back behind those that wait."""
        pending = self._brain.cluster.pending
        for group in self._room.groups():
            released_s = self._released_s.get(group)
            if released_s is None or all(one.name not in stuck for one in tree.upwards(self._queue_of(group))):
                continue
            pods = self._room.pods(group)
            if not all(pod in pending for pod in pods):
                continue
            if now_s < released_s + PATIENCE_S:
                due_s = released_s + PATIENCE_S
                self._next_s = due_s if self._next_s is None else min(self._next_s, due_s)
                continue
            self._take_back(group)
            self._is_due = True

    def _take_back(self, group: str) -> None:
        self._released_s.pop(group)
        self._recalls[group] = self._recalls.get(group, 0) + 1
        for pod in self._room.pods(group):
            self._room.leave(pod)
            self._brain.intake.apply(PodGone(pod))
            sight = self._brain.world.sight(pod)
            if sight is not None and isinstance(sight.event, PodArrived):
                self._keep(group, sight.event)

    def _queue_of(self, group: str) -> str:
        return self._view.queues_of.get(group, "")

    def _is_away(self) -> bool:
        return self._presence is None or not self._presence.is_there
