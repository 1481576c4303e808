"""Holds queued pods until their Workload is admitted, and ends them when it has to stop.

One loop over Workloads by name, whatever wakes it: a pod, the Workload, or a kind that keeps pods. It starts where the
server has Workloads, also when these are installed later.
"""

from __future__ import annotations

import asyncio

from shoal.controllers.queued_pods.driving import Driving
from shoal.controllers.queued_pods.growing import Growing
from shoal.controllers.queued_pods.hand import Hand
from shoal.controllers.queued_pods.making import Making
from shoal.controllers.queued_pods.priorities import Priorities
from shoal.controllers.queued_pods.refusing import Refusing
from shoal.controllers.queued_pods.scene import Scenes, keys_of_pod
from shoal.controllers.queued_pods.serving import excess_of
from shoal.controllers.queued_pods.tending import Tending
from shoal.controllers.queued_pods.words import PRIORITY_LABEL
from shoal.controllers.queued_pods.workload_sight import WorkloadSight
from shoal.controllers.queued_work.rules import JobRules, Rules
from shoal.store.live.context import Context, Controller
from shoal.store.live.ecosystem_kinds import (
    LEADER_WORKER_SETS,
    RESOURCE_FLAVORS,
    WORKLOAD_PRIORITY_CLASSES,
    WORKLOADS,
)
from shoal.store.live.item import Item, Key, Obj
from shoal.store.live.kind import PODS, PRIORITY_CLASSES, STATEFUL_SETS, Kind
from shoal.store.live.loop import Loop
from shoal.store.live.refusals import NotFoundError
from shoal.store.live.served import Served
from shoal.store.watched.queue_configuration import WhenNew, never_new

_OLDER = "v1beta1"
_ASKED_ABOUT = 16
_LATER_S = 30.0
_TOGETHER_S = 0.01
_CLASS = PRIORITY_LABEL.encode()


def queued_pods_controller(
    context: Context, served: Served, rules: Rules = JobRules, when_new: WhenNew = never_new
) -> Controller:
    made = QueuedPods(context, served, rules)
    when_new(made.look_again)
    return made


class QueuedPods:
    def __init__(self, context: Context, served: Served, rules: Rules) -> None:
        self.name = context.name
        self._context = context
        self._served = served
        self._rules = rules
        self._found: asyncio.Queue[Kind] = asyncio.Queue()
        self._round: _Round | None = None
        for kind in (RESOURCE_FLAVORS, WORKLOAD_PRIORITY_CLASSES):
            served.when_there(kind, lambda one: _ignored(context.informers.of(one)), kind._replace(version=_OLDER))
        served.when_there(LEADER_WORKER_SETS)
        served.when_there(WORKLOADS, self._found.put_nowait, WORKLOADS._replace(version=_OLDER))

    async def run(self) -> None:
        """Until cancelled."""
        if self._round is None:
            self._round = _Round(self._context, self._served, await self._found.get(), self._rules)
        # That of an earlier run goes on: whom it follows is told to it already.
        await self._round.run()

    def look_again(self) -> None:
        """Workloads were told about by other rules."""
        if self._round is not None:
            self._round.look_again()


class _Round:
    def __init__(self, context: Context, served: Served, workloads: Kind, rules: Rules) -> None:
        self._context = context
        self._served = served
        self._workloads = workloads
        self._hand = Hand(context, workloads)
        self._scenes = Scenes(context, served, workloads)
        refusing = Refusing(self._hand)
        self._making = Making(self._hand, Priorities(context, served), refusing)
        driving = Driving(self._hand, self._flavor, refusing)
        self._tending = Tending(self._hand, driving, Growing(self._hand, self._making))
        self._rules = rules
        self._loop = Loop(context, self.reconcile, workers=16)
        self._follow()

    async def run(self) -> None:
        await self._loop.run()

    def _follow(self) -> None:
        loop = self._loop
        loop.follow(self._workloads, self._scenes.keys_of_workload)
        loop.need(PODS)
        self._context.informers.of(PODS).on_change(self._pod_changed)
        loop.follow(STATEFUL_SETS, lambda item: self._scenes.keys_of_parent(STATEFUL_SETS, item))
        loop.need(PRIORITY_CLASSES)
        self._served.when_there(LEADER_WORKER_SETS, self._follow_leaders)
        self._served.when_there(WORKLOAD_PRIORITY_CLASSES, self._follow_classes)

    def look_again(self) -> None:
        for workload in self._context.informers.of(self._workloads):
            for key in self._scenes.keys_of_workload(workload):
                self._loop.wake(key)

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        """Changes of many pods of a group are handled together."""
        for item in (before, after):
            for key in keys_of_pod(item) if item is not None else ():
                self._loop.wake(key, _TOGETHER_S)

    def _follow_leaders(self, kind: Kind) -> None:
        def changed(before: Item | None, after: Item | None) -> None:
            for item in (before, after):
                for key in self._scenes.keys_of_parent(kind, item) if item is not None else ():
                    self._loop.wake(key)
            excess = excess_of(kind, after) if after is not None else ""
            if after is not None and excess and (before is None or excess_of(kind, before) != excess):
                self._hand.tell_object(after.obj(), kind, "TooManyReplicas", excess, "Warning")

        self._context.informers.of(kind).on_change(changed)

    def _follow_classes(self, kind: Kind) -> None:
        """A class that comes is what some may have waited for."""

        def changed(before: Item | None, _: Item | None) -> None:
            if before is None:
                for pod in self._context.informers.of(PODS):
                    if _CLASS in pod.data:
                        for key in keys_of_pod(pod):
                            self._loop.wake(key)
                for item in self._context.informers.of(STATEFUL_SETS):
                    for key in self._scenes.keys_of_parent(STATEFUL_SETS, item):
                        self._loop.wake(key)

        self._context.informers.of(kind).on_change(changed)

    def _flavor(self, name: str) -> Obj | None:
        kind = self._served.find(RESOURCE_FLAVORS)
        item = self._context.informers.of(kind).get("", name) if kind is not None else None
        return None if item is None else item.obj()

    async def reconcile(self, key: Key) -> float | None:
        rules, scene = self._rules(), self._scenes.of(key)
        if scene is None:
            return None
        if rules is None:
            return _LATER_S
        item, workload = scene.item, scene.workload
        if item is None or workload is None:
            parent = scene.parent
            if parent is None or rules.frameworks.has(parent.kind.group, parent.kind.name):
                await self._making.begin(scene)
        elif workload.is_terminating():
            await self._tending.end(scene, item, workload)
        elif not scene.pods and scene.parent is None:
            if await self._is_without(scene.key, workload):
                for each in (*scene.older, *scene.newer, item):
                    await self._hand.discard(each)
        else:
            return await self._tending.tend(scene, item, workload, rules)
        return None

    async def _is_without(self, key: Key, workload: WorkloadSight) -> bool:
        """Whether all that the Workload stood for is gone. The server is asked: the cache of pods may be behind that of
        Workloads."""
        owners = workload.metadata.owner_references
        if not owners or len(owners) > _ASKED_ABOUT:
            # Whoever collects garbage asks about each.
            return False
        for owner in owners:
            kind = {PODS.name: PODS, STATEFUL_SETS.name: STATEFUL_SETS}.get(owner.kind)
            kind = kind or self._served.find(LEADER_WORKER_SETS)
            if kind is None or kind.name != owner.kind:
                return False
            try:
                found = await self._context.api.get(kind, key[0], owner.name)
            except NotFoundError:
                continue
            if found.uid == owner.uid and (kind == PODS or key in self._scenes.keys_of_parent(kind, found)):
                return False
        return True


def _ignored(_: object) -> None:
    """Followed from now on; nobody has to be woken."""
