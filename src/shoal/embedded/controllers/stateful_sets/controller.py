"""Reconciles StatefulSets step by step; `plan.py` decides the order."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS, VOLUME_CLAIMS
from shoal.client.loop import Loop
from shoal.client.owned_pods.owner_wakeups import OwnerWakeups
from shoal.client.owned_pods.ownership import Claims, selector_of_spec
from shoal.client.owned_pods.pod_control import is_namespace_ending, slow_start_batch
from shoal.client.owned_pods.pod_view import PodView, next_available_s, pod_view
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import AlreadyExistsError, NotFoundError
from shoal.embedded.controllers.revisions.history import History
from shoal.embedded.controllers.revisions.revision import template_of
from shoal.embedded.controllers.stateful_sets.claims import VolumeClaims
from shoal.embedded.controllers.stateful_sets.identity import INDEX_LABEL, NAME_LABEL, ordinal_of, pod_of_ordinal
from shoal.embedded.controllers.stateful_sets.plan import REVISION_LABEL, CreatePod, DesiredSet, Step, steps
from shoal.units.errors import ShoalError
from shoal.units.int_or_percent import amount_of

_HASH_LABEL = "controller.kubernetes.io/hash"
_STALE_S = 1.0
Pods = dict[int, PodView]


def stateful_set_controller(context: Context) -> Controller:
    return StatefulSets(context)


class StatefulSets:
    def __init__(self, context: Context) -> None:
        self.name = context.name
        self._context = context
        self._sets = context.informers.of(STATEFUL_SETS)
        self._pods = context.informers.of(PODS)
        self._owner_wakeups = OwnerWakeups(STATEFUL_SETS, self._sets, selector_of_spec)
        self._loop = Loop(context, self.reconcile)
        self._loop.follow(STATEFUL_SETS)
        self._loop.need(PODS, CONTROLLER_REVISIONS, VOLUME_CLAIMS)
        self._owner_wakeups.wake(self._loop, self._pods)

    async def run(self) -> None:
        await self._loop.run()

    async def reconcile(self, key: Key) -> float | None:
        item = self._sets.get(*key)
        if item is None:
            self._owner_wakeups.forget(key)
            return None
        obj = {**item.obj(), "kind": STATEFUL_SETS.name, "apiVersion": STATEFUL_SETS.api_version}
        selector = self._owner_wakeups.selector(item)
        history = History(self._context, (STATEFUL_SETS, obj), selector, _HASH_LABEL)
        update = (await history.settle())["metadata"]["name"]
        desired = _desired(obj, update, {one["metadata"]["name"] for one in history.all})
        pods = await self._current_pods(obj, item)
        error, again_s = None, None
        if "deletionTimestamp" not in obj["metadata"]:
            error, again_s = await self._take_steps(obj, desired, history, pods)
        pods = await self._current_pods(obj, item)
        await self._write_status(obj, desired, history, pods)
        if error is not None:
            raise error
        now_s = self._context.clock.seconds()
        wait_s = next_available_s(list(pods.values()), desired.min_ready_s, now_s)
        return min((one for one in (again_s, wait_s) if one is not None), default=None)

    async def _current_pods(self, obj: Obj, item: Item) -> Pods:
        name = obj["metadata"]["name"]
        claims = Claims(
            self._context.api,
            (STATEFUL_SETS, PODS),
            obj,
            self._owner_wakeups.selector(item),
            lambda pod, _meta: ordinal_of(name, pod.name) is not None,
        )
        views = [pod_view(pod) for pod in await claims.claimed(self._pods)]
        return {ordinal: pod for pod in views if (ordinal := ordinal_of(name, pod.name)) is not None}

    # -- steps ------------------------------------------------------------------------------------------------------

    async def _take_steps(
        self, obj: Obj, desired: DesiredSet, history: History, pods: Pods
    ) -> tuple[ShoalError | None, float | None]:
        claims = VolumeClaims(self._context, obj)
        templates = {one["metadata"]["name"]: template_of(one) for one in history.all}
        stale = False

        async def take(step: Step) -> None:
            nonlocal stale
            if not isinstance(step, CreatePod):
                await self._delete(obj, pods[step.ordinal])
            elif claims.are_stale(step.ordinal):
                stale = True
            else:
                await claims.make(step.ordinal)
                pod = pod_of_ordinal(obj, templates[step.revision], step.revision, step.ordinal)
                await self._create(obj, pod)

        try:
            await self._repair(obj, desired, claims, pods)
        except ShoalError as error:
            return error, None
        _, failure = await slow_start_batch(steps(desired, pods, self._context.clock.seconds()), take)
        return failure, _STALE_S if stale else None

    async def _repair(self, obj: Obj, desired: DesiredSet, claims: VolumeClaims, pods: Pods) -> None:
        """Repairs edited pod identities, deleted claims of pending pods, and owners of claims."""
        places = range(desired.start, desired.start + desired.replicas)
        for ordinal, pod in pods.items():
            if obj["spec"].get("volumeClaimTemplates"):
                await claims.own(ordinal, pod, is_condemned=ordinal not in places)
                if pod.status.phase == "Pending" and pod.is_active() and ordinal in places:
                    await claims.make(ordinal)
            marks = {NAME_LABEL: pod.name, INDEX_LABEL: str(ordinal)}
            if pod.is_active() and not marks.items() <= pod.metadata.labels.items():
                change = {"metadata": {"labels": marks, "uid": pod.metadata.uid}}
                await self._context.api.patch(PODS, pod.metadata.namespace, pod.name, Patch("merge", change))

    async def _create(self, obj: Obj, pod: Obj) -> None:
        name, set_name = pod["metadata"]["name"], obj["metadata"]["name"]
        try:
            await self._context.api.create(PODS, pod)
        except AlreadyExistsError:
            # Either our pod is not in the cache yet, or another pod has the name: then the set waits until it is free.
            raise
        except ShoalError as error:
            if is_namespace_ending(error):
                return
            words = f"Create Pod {name} in StatefulSet {set_name} failed error: {error.what}"
            self._context.events.record(obj, "FailedCreate", words, type_="Warning")
            raise
        words = f"Create Pod {name} in StatefulSet {set_name} successful"
        self._context.events.record(obj, "SuccessfulCreate", words)

    async def _delete(self, obj: Obj, pod: PodView) -> None:
        meta, set_name = pod.metadata, obj["metadata"]["name"]
        try:
            await self._context.api.delete(PODS, meta.namespace, meta.name, Deletion(uid=meta.uid))
        except NotFoundError:
            return
        except ShoalError as error:
            words = f"Delete Pod {meta.name} in StatefulSet {set_name} failed error: {error.what}"
            self._context.events.record(obj, "FailedDelete", words, type_="Warning")
            raise
        words = f"Delete Pod {meta.name} in StatefulSet {set_name} successful"
        self._context.events.record(obj, "SuccessfulDelete", words)

    async def _write_status(self, obj: Obj, desired: DesiredSet, history: History, pods: Pods) -> None:
        views = list(pods.values())
        status = stateful_set_status(obj, desired, views, history.collisions, self._context.clock.seconds())
        if status != (obj.get("status") or {}):
            await self._context.api.update(STATEFUL_SETS, {**obj, "status": status}, "status")
        in_use = {desired.update, status["currentRevision"]}
        in_use |= {pod.metadata.labels.get(REVISION_LABEL, "") for pod in views}
        await history.trim(in_use, obj["spec"].get("revisionHistoryLimit", 10))


def _desired(obj: Obj, update: str, known: set[str]) -> DesiredSet:
    spec, status = obj["spec"], obj.get("status") or {}
    strategy = spec.get("updateStrategy") or {}
    rolling, replicas = strategy.get("rollingUpdate"), spec.get("replicas", 1)
    current = status.get("currentRevision", "")
    return DesiredSet(
        start=(spec.get("ordinals") or {}).get("start", 0),
        replicas=replicas,
        current=current if current in known else update,
        update=update,
        is_ordered=spec.get("podManagementPolicy", "OrderedReady") != "Parallel",
        is_rolling=strategy.get("type", "RollingUpdate") == "RollingUpdate",
        partition=None if rolling is None else rolling.get("partition", 0),
        most_unavailable=max(amount_of((rolling or {}).get("maxUnavailable", 1), replicas, up=True), 1),
        min_ready_s=spec.get("minReadySeconds", 0),
        current_replicas=status.get("currentReplicas", 0),
    )


def stateful_set_status(obj: Obj, desired: DesiredSet, pods: Sequence[PodView], collisions: int, now_s: float) -> Obj:
    """The status; the update revision becomes the current one when all pods are updated and ready."""
    living = [pod for pod in pods if not pod.is_terminating()]
    ready = [pod for pod in pods if pod.status.phase == "Running" and pod.is_ready()]
    numbers = {
        "readyReplicas": len(ready),
        "currentReplicas": _of(living, desired.current),
        "updatedReplicas": _of(living, desired.update),
    }
    current = desired.current
    is_done = all(count == desired.replicas for count in (len(pods), len(ready), numbers["updatedReplicas"]))
    if desired.is_rolling and is_done:
        current = desired.update
        numbers["currentReplicas"] = numbers["updatedReplicas"]
    return {
        "replicas": len(pods),
        **{key: count for key, count in numbers.items() if count},
        "availableReplicas": sum(pod.is_available(desired.min_ready_s, now_s) for pod in ready),
        "currentRevision": current,
        "updateRevision": desired.update,
        "observedGeneration": obj["metadata"].get("generation", 0),
        "collisionCount": collisions,
    } | ({"conditions": obj["status"]["conditions"]} if (obj.get("status") or {}).get("conditions") else {})


def _of(pods: Sequence[PodView], revision: str) -> int:
    return sum(pod.metadata.labels.get(REVISION_LABEL) == revision for pod in pods)
