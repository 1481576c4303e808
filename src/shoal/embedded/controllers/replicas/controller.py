"""Reconciles ReplicaSets and ReplicationControllers: adopts orphans, creates and deletes pods, writes the status.

Pods that a quota refused are tried again with backoff, and as soon as a pod of the namespace is deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from shoal.api.selectors import LabelSelector, Selector
from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Kind
from shoal.client.loop import Loop
from shoal.client.owned_pods.owner_wakeups import GATHER_S, OwnerWakeups
from shoal.client.owned_pods.ownership import Claims, controller_reference, owner_index, selector_of_spec
from shoal.client.owned_pods.pod_control import PodControl, pod_from_template, slow_start_batch
from shoal.client.owned_pods.pod_view import PodView, next_available_s, pod_view
from shoal.embedded.controllers.replicas.ranking import first_to_go
from shoal.units.errors import ShoalError

_MAX_PODS_PER_SYNC = 500
"""The created or deleted pods wake the set for the rest."""


class ReplicaKind(msgspec.Struct, frozen=True):
    kind: Kind
    has_map_selector: bool = False
    counts_terminating: bool = True

    def selector(self, spec: Obj) -> Selector:
        if not self.has_map_selector:
            return selector_of_spec(spec)
        written = spec.get("selector") or {}
        return LabelSelector(match_labels=written).selector() if written else Selector.NOTHING


REPLICA_SETS_KIND = ReplicaKind(REPLICA_SETS)
REPLICATION_CONTROLLERS_KIND = ReplicaKind(REPLICATION_CONTROLLERS, has_map_selector=True, counts_terminating=False)


def replica_set_controller(context: Context) -> Controller:
    return Replicas(context, REPLICA_SETS_KIND)


def replication_controller(context: Context) -> Controller:
    return Replicas(context, REPLICATION_CONTROLLERS_KIND)


class Replicas:
    def __init__(self, context: Context, replica_kind: ReplicaKind) -> None:
        self.name = context.name
        self._context = context
        self._replica_kind = replica_kind
        self._sets = context.informers.of(replica_kind.kind)
        self._owner_wakeups = OwnerWakeups(replica_kind.kind, self._sets, replica_kind.selector)
        self._pods = context.informers.of(PODS)
        self._pods_of = owner_index(self._pods)
        self._sets_of = owner_index(self._sets)
        self._refused: dict[str, set[Key]] = {}
        """The owners of refused pods by namespace."""
        self._loop = Loop(context, self.reconcile)
        self._loop.follow(replica_kind.kind)
        self._loop.need(PODS)
        self._owner_wakeups.wake(self._loop, self._pods)
        self._pods.on_change(self._quota_freed)

    async def run(self) -> None:
        await self._loop.run()

    async def reconcile(self, key: Key) -> float | None:
        item = self._sets.get(*key)
        if item is None:
            self._owner_wakeups.forget(key)
            self._note_failure(key, failed=False)
            return None
        obj = _full_object(item, self._replica_kind)
        selector = self._owner_wakeups.selector(item)
        claims = Claims(self._context.api, (self._replica_kind.kind, PODS), obj, selector, _is_active)
        pods = [pod_view(pod) for pod in await claims.claimed(self._pods)]
        failure, error = None, None
        if "deletionTimestamp" not in obj["metadata"]:
            failure, error = await self._scale(obj, [pod for pod in pods if pod.is_active()])
        self._note_failure(key, failed=error is not None)
        # The cache already has our own writes.
        pods = [pod_view(pod) for pod in self._pods_of[item.uid]]
        await self._write_status(key, obj, pods, failure)
        if error is not None:
            raise error
        min_ready_s = obj["spec"].get("minReadySeconds", 0)
        return next_available_s(pods, min_ready_s, self._context.clock.seconds()) if min_ready_s else None

    # -- scaling ----------------------------------------------------------------------------------------------------

    async def _scale(self, obj: Obj, active: list[PodView]) -> tuple[Failure | None, ShoalError | None]:
        lacking = obj["spec"].get("replicas", 1) - len(active)
        hand = PodControl(self._context, obj)
        if lacking > 0:
            reference = controller_reference(self._replica_kind.kind, obj["metadata"])
            template = obj["spec"]["template"]

            async def create(_number: int) -> None:
                await hand.create(pod_from_template(template, obj, reference))

            _, error = await slow_start_batch(range(min(lacking, _MAX_PODS_PER_SYNC)), create)
            return (Failure("FailedCreate", error.what), error) if error is not None else (None, None)
        if lacking < 0:
            chosen = first_to_go(active, self._node_counts(obj), self._context.clock.seconds())
            going = chosen[: min(-lacking, _MAX_PODS_PER_SYNC)]
            _, error = await slow_start_batch(going, hand.delete)
            return (Failure("FailedDelete", error.what), error) if error is not None else (None, None)
        return None, None

    def _node_counts(self, obj: Obj) -> Counter[str]:
        """The number of pods per node, of this set and of sets with the same owner."""
        uids = {obj["metadata"]["uid"]}
        owner = next((one for one in obj["metadata"].get("ownerReferences") or () if one.get("controller")), None)
        if owner is not None:
            uids |= {item.uid for item in self._sets_of[owner["uid"]]}
        pods = (pod_view(item) for uid in uids for item in self._pods_of[uid])
        return Counter(pod.spec.node_name for pod in pods if pod.is_active())

    # -- status -----------------------------------------------------------------------------------------------------

    async def _write_status(self, key: Key, obj: Obj, pods: list[PodView], failure: Failure | None) -> None:
        item = self._sets.get(*key)
        if item is None or item.uid != obj["metadata"]["uid"]:
            return
        clock, spec, before = self._context.clock, obj["spec"], obj.get("status") or {}
        labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        active = [pod for pod in pods if pod.is_active()]
        status = counts(active, labels, spec.get("minReadySeconds", 0), clock.seconds())
        if self._replica_kind.counts_terminating:
            status["terminatingReplicas"] = sum(pod.is_terminating() and not pod.is_finished() for pod in pods)
        conditions = with_failure(before.get("conditions") or [], failure, clock.text())
        if conditions:
            status["conditions"] = conditions
        status["observedGeneration"] = obj["metadata"].get("generation", 0)
        if status != before:
            await self._context.api.update(self._replica_kind.kind, {**obj, "status": status}, "status")

    # -- event handlers ---------------------------------------------------------------------------------------------

    def _quota_freed(self, before: Item | None, after: Item | None) -> None:
        """Wakes the waiting owners, because a deleted or finished pod frees its quota."""
        gone = after or before
        if gone is not None and gone.namespace in self._refused and (after is None or pod_view(after).is_finished()):
            for key in self._refused[gone.namespace]:
                self._loop.wake(key, GATHER_S)

    def _note_failure(self, key: Key, *, failed: bool) -> None:
        waiting = self._refused.setdefault(key[0], set())
        waiting.discard(key)
        if failed:
            waiting.add(key)
        if not waiting:
            self._refused.pop(key[0], None)


def _full_object(item: Item, replica_kind: ReplicaKind) -> Obj:
    return {**item.obj(), "kind": replica_kind.kind.name, "apiVersion": replica_kind.kind.api_version}


def _is_active(item: Item, _meta: object) -> bool:
    return not pod_view(item).is_finished()


FAILURE = "ReplicaFailure"


class Failure(msgspec.Struct, frozen=True):
    """Why pods are missing."""

    reason: str
    message: str


def counts(pods: Iterable[PodView], template_labels: Mapping[str, str], min_ready_s: int, now_s: float) -> Obj:
    """The counts of active pods; zeros are left out as in Kubernetes."""
    replicas = labelled = ready = available = 0
    for pod in pods:
        replicas += 1
        labelled += template_labels.items() <= pod.metadata.labels.items()
        wait_s = pod.available_in_s(min_ready_s, now_s)
        ready += wait_s is not None
        available += wait_s == 0.0
    optional = {"fullyLabeledReplicas": labelled, "readyReplicas": ready, "availableReplicas": available}
    return {"replicas": replicas} | {key: count for key, count in optional.items() if count}


def with_failure(conditions: list[Obj], failure: Failure | None, now: str) -> list[Obj]:
    """Sets the condition while creation or deletion fails, and removes it otherwise."""
    before = next((one for one in conditions if one["type"] == FAILURE), None)
    if failure is not None and before is not None and before.get("reason") == failure.reason:
        return conditions
    others = [one for one in conditions if one["type"] != FAILURE]
    if failure is None:
        return others
    said = {"reason": failure.reason, "message": failure.message}
    return [*others, {"type": FAILURE, "status": "True", "lastTransitionTime": now, **said}]
