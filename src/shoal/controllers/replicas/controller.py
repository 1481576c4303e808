"""As many pods as a ReplicaSet (or ReplicationController) asks for: takes fitting orphans, makes what lacks, ends what
is too much, and tells the state.

What a quota refused is tried again after ever longer waits, and as soon as a pod of the namespace goes.
"""

from __future__ import annotations

from collections import Counter

from shoal.controllers.owned_pods.concern import GATHER_S, Concern
from shoal.controllers.owned_pods.making import PodHand, in_growing_groups, pod_from_template
from shoal.controllers.owned_pods.ownership import Claims, controller_reference, owner_index
from shoal.controllers.owned_pods.sight import PodSight, next_available_s, pod_sight
from shoal.controllers.replicas.flavour import CONTROLLERS, SETS, Flavour
from shoal.controllers.replicas.ranking import first_to_go
from shoal.controllers.replicas.status import Failure, counts, with_failure
from shoal.store.live.context import Context, Controller
from shoal.store.live.item import Item, Key, Obj
from shoal.store.live.kind import PODS
from shoal.store.live.loop import Loop
from shoal.units.errors import ShoalError

_MOST_AT_ONCE = 500
"""The pods made or ended wake the set for the rest."""


def replica_set_controller(context: Context) -> Controller:
    return Replicas(context, SETS)


def replication_controller(context: Context) -> Controller:
    return Replicas(context, CONTROLLERS)


class Replicas:
    def __init__(self, context: Context, flavour: Flavour) -> None:
        self.name = context.name
        self._context = context
        self._flavour = flavour
        self._sets = context.informers.of(flavour.kind)
        self._concern = Concern(flavour.kind, self._sets, flavour.selector)
        self._pods = context.informers.of(PODS)
        self._pods_of = owner_index(self._pods)
        self._sets_of = owner_index(self._sets)
        self._refused: dict[str, set[Key]] = {}
        """Per namespace, who wants pods that were refused."""
        self._loop = Loop(context, self.reconcile)
        self._loop.follow(flavour.kind)
        self._loop.need(PODS)
        self._concern.wake(self._loop, self._pods)
        self._pods.on_change(self._room_made)

    async def run(self) -> None:
        await self._loop.run()

    async def reconcile(self, key: Key) -> float | None:
        item = self._sets.get(*key)
        if item is None:
            self._concern.forget(key)
            self._remember(key, failed=False)
            return None
        obj = _whole(item, self._flavour)
        selector = self._concern.selector(item)
        claims = Claims(self._context.api, (self._flavour.kind, PODS), obj, selector, _is_living)
        pods = [pod_sight(pod) for pod in await claims.claimed(self._pods)]
        failure, error = None, None
        if "deletionTimestamp" not in obj["metadata"]:
            failure, error = await self._filled(obj, [pod for pod in pods if pod.is_active()])
        self._remember(key, failed=error is not None)
        # Own writes stand in the cache already.
        pods = [pod_sight(pod) for pod in self._pods_of[item.uid]]
        await self._tell(key, obj, pods, failure)
        if error is not None:
            raise error
        min_ready_s = obj["spec"].get("minReadySeconds", 0)
        return next_available_s(pods, min_ready_s, self._context.clock.seconds()) if min_ready_s else None

    # -- as many as asked for ---------------------------------------------------------------------------------------

    async def _filled(self, obj: Obj, active: list[PodSight]) -> tuple[Failure | None, ShoalError | None]:
        lacking = obj["spec"].get("replicas", 1) - len(active)
        hand = PodHand(self._context, obj)
        if lacking > 0:
            reference = controller_reference(self._flavour.kind, obj["metadata"])
            template = obj["spec"]["template"]

            async def create(_number: int) -> None:
                await hand.create(pod_from_template(template, obj, reference))

            _, error = await in_growing_groups(range(min(lacking, _MOST_AT_ONCE)), create)
            return (Failure("FailedCreate", error.what), error) if error is not None else (None, None)
        if lacking < 0:
            chosen = first_to_go(active, self._crowds(obj), self._context.clock.seconds())
            going = chosen[: min(-lacking, _MOST_AT_ONCE)]
            _, error = await in_growing_groups(going, hand.delete)
            return (Failure("FailedDelete", error.what), error) if error is not None else (None, None)
        return None, None

    def _crowds(self, obj: Obj) -> Counter[str]:
        """Pods per node of this set and of those with the same owner."""
        uids = {obj["metadata"]["uid"]}
        owner = next((one for one in obj["metadata"].get("ownerReferences") or () if one.get("controller")), None)
        if owner is not None:
            uids |= {item.uid for item in self._sets_of[owner["uid"]]}
        pods = (pod_sight(item) for uid in uids for item in self._pods_of[uid])
        return Counter(pod.spec.node_name for pod in pods if pod.is_active())

    # -- telling ----------------------------------------------------------------------------------------------------

    async def _tell(self, key: Key, obj: Obj, pods: list[PodSight], failure: Failure | None) -> None:
        item = self._sets.get(*key)
        if item is None or item.uid != obj["metadata"]["uid"]:
            return
        clock, spec, before = self._context.clock, obj["spec"], obj.get("status") or {}
        labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        active = [pod for pod in pods if pod.is_active()]
        status = counts(active, labels, spec.get("minReadySeconds", 0), clock.seconds())
        if self._flavour.counts_terminating:
            status["terminatingReplicas"] = sum(pod.is_terminating() and not pod.is_finished() for pod in pods)
        conditions = with_failure(before.get("conditions") or [], failure, clock.text())
        if conditions:
            status["conditions"] = conditions
        status["observedGeneration"] = obj["metadata"].get("generation", 0)
        if status != before:
            await self._context.api.update(self._flavour.kind, {**obj, "status": status}, "status")

    # -- being woken ------------------------------------------------------------------------------------------------

    def _room_made(self, before: Item | None, after: Item | None) -> None:
        """A pod that is gone or has ended gives its quota back."""
        gone = after or before
        if gone is not None and gone.namespace in self._refused and (after is None or pod_sight(after).is_finished()):
            for key in self._refused[gone.namespace]:
                self._loop.wake(key, GATHER_S)

    def _remember(self, key: Key, *, failed: bool) -> None:
        waiting = self._refused.setdefault(key[0], set())
        waiting.discard(key)
        if failed:
            waiting.add(key)
        if not waiting:
            self._refused.pop(key[0], None)


def _whole(item: Item, flavour: Flavour) -> Obj:
    return {**item.obj(), "kind": flavour.kind.name, "apiVersion": flavour.kind.api_version}


def _is_living(item: Item, _meta: object) -> bool:
    return not pod_sight(item).is_finished()
