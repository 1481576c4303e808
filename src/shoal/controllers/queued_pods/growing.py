"""A StatefulSet that grows while it runs: another Workload of its whole size takes the place of the one that it has.

Its pods run on, and those that are added are held until the other one is admitted; then the older one is finished.
Kueue lets nobody change such a number but from and to zero.

Promises: what is done next follows from the Workloads and the set alone; of several the newest that is admitted counts.

Rejected: ending all pods and asking for the whole anew. Who serves would be gone for as long as that takes.
"""

from __future__ import annotations

from shoal.controllers.queued_pods import course
from shoal.controllers.queued_pods.hand import Hand
from shoal.controllers.queued_pods.making import Making
from shoal.controllers.queued_pods.scene import Scene
from shoal.controllers.queued_pods.serving import Parent, has_grown
from shoal.controllers.queued_pods.workload_sight import WorkloadSight, workload_sight
from shoal.store.live.item import Item
from shoal.store.live.kind import STATEFUL_SETS
from shoal.units.errors import UserError


class Growing:
    def __init__(self, hand: Hand, making: Making) -> None:
        self._hand = hand
        self._making = making

    async def settle(self, scene: Scene, item: Item, workload: WorkloadSight) -> bool:
        """Whether anything was done about the Workloads beside the one that it runs by."""
        is_admitted = workload.is_true("Admitted") and not workload.is_true("Evicted")
        is_done = False
        for other in scene.older:
            is_done = True
            if not workload_sight(other).is_true("Finished") and is_admitted:
                await self._replace(other, item)
            elif workload_sight(other).is_true("Finished"):
                is_done = await self._hand.let_vanish(other)
            else:
                await self._hand.discard(other)
        parent = scene.parent
        if not is_admitted or parent is None or parent.kind != STATEFUL_SETS:
            return is_done
        return await self._next(scene, item, parent) or is_done

    async def _next(self, scene: Scene, item: Item, parent: Parent) -> bool:
        """What asks for more than there is."""
        for other in scene.newer:
            if await self._is_let_go(other):
                return True
        wants_more = has_grown(parent, workload_sight(item))
        for other in scene.newer if not wants_more else scene.newer[:-1]:
            await self._hand.discard(other)
        if not wants_more:
            return bool(scene.newer)
        if not scene.newer:
            return await self._making.again(scene, parent, item)
        last = workload_sight(scene.newer[-1])
        if last.counts() == parent.counts() or last.is_true("QuotaReserved"):
            return False
        try:
            await self._hand.amend(scene.newer[-1], {"spec": {"podSets": [one.to_api() for one in parent.pod_sets]}})
        except UserError:
            # It is said on the set by whoever made the first one.
            return False
        return True

    async def _is_let_go(self, other: Item) -> bool:
        """Whether it had to leave again before anything ran by it."""
        sight = workload_sight(other)
        if sight.is_terminating():
            await self._hand.discard(other)
        elif sight.is_true("Evicted") and sight.is_true("QuotaReserved"):
            await self._hand.write_status(other, course.give_back)
        else:
            return False
        return True

    async def _replace(self, other: Item, by: Item) -> None:
        uid = next(iter(owner.uid for owner in workload_sight(by).metadata.owner_references), "")
        words = f"Replaced to accommodate a workload (UID: {by.uid}, JobUID: {uid}) due to workload slice aggregation"
        await self._hand.write_status(other, lambda status, moment: course.replace(status, words, moment))
