"""Reconciles Deployments by their ReplicaSets; the steps are in `rollout.py`."""

from __future__ import annotations

from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import DEPLOYMENTS, PODS, REPLICA_SETS
from shoal.client.loop import Loop
from shoal.client.owned_pods.owner_wakeups import GATHER_S, OwnerWakeups
from shoal.client.owned_pods.ownership import Claims, head, owner_index, selector_of_spec
from shoal.client.owned_pods.pod_view import pod_view
from shoal.embedded.controllers.deployments.replica_sets import Sets, whole
from shoal.embedded.controllers.deployments.rollout import Rollout


def deployment_controller(context: Context) -> Controller:
    return Deployments(context)


class Deployments:
    def __init__(self, context: Context) -> None:
        self.name = context.name
        self._context = context
        self._deployments = context.informers.of(DEPLOYMENTS)
        self._owner_wakeups = OwnerWakeups(DEPLOYMENTS, self._deployments, selector_of_spec)
        self._sets = context.informers.of(REPLICA_SETS)
        self._pods = context.informers.of(PODS)
        self._pods_of = owner_index(self._pods)
        self._loop = Loop(context, self.reconcile)
        self._loop.follow(DEPLOYMENTS)
        self._loop.follow(REPLICA_SETS, self._owner_wakeups.keys)
        self._loop.need(PODS)
        self._pods.on_change(self._pod_changed)

    async def run(self) -> None:
        await self._loop.run()

    async def reconcile(self, key: Key) -> float | None:
        item = self._deployments.get(*key)
        if item is None:
            self._owner_wakeups.forget(key)
            return None
        deployment = whole(item, DEPLOYMENTS.name)
        claims = Claims(self._context.api, (DEPLOYMENTS, REPLICA_SETS), deployment, self._owner_wakeups.selector(item))
        mine = [whole(one, REPLICA_SETS.name) for one in await claims.claimed(self._sets)]
        sets = Sets(self._context, deployment, mine, self._serving)
        return await Rollout(sets, self._context.clock, self._has_pods).step()

    def _serving(self, replica_set: Obj) -> int:
        now_s, min_ready_s = self._context.clock.seconds(), replica_set["spec"].get("minReadySeconds", 0)
        pods = map(pod_view, self._pods_of[replica_set["metadata"]["uid"]])
        return sum(pod.is_active() and pod.is_available(min_ready_s, now_s) for pod in pods)

    def _has_pods(self, replica_set: Obj) -> bool:
        pods = self._pods_of[replica_set["metadata"]["uid"]]
        return any(not pod_view(pod).is_finished() for pod in pods)

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        """A Deployment with the strategy Recreate continues when the last old pod is deleted; all other progress is
        visible in the ReplicaSets.
        """
        owner = head(before).controller() if before is not None else None
        if before is None or owner is None or owner.kind != "ReplicaSet":
            return
        if after is not None and not pod_view(after).is_finished():
            return
        replica_set = self._sets.get(before.namespace, owner.name)
        if replica_set is not None and replica_set.uid == owner.uid:
            for key in self._owner_wakeups.keys(replica_set):
                self._loop.wake(key, GATHER_S)
