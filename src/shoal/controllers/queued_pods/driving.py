"""Pods follow their Workload: let go when it is admitted, ended when it has to stop, held while it waits.

Promises: no pod is let go before its Workload is admitted, and no admission is given back while a pod of it may still
hold room. Whatever is found, the next step follows from it alone.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import structs

from shoal.controllers.queued_pods import course
from shoal.controllers.queued_pods.hand import Hand
from shoal.controllers.queued_pods.membership import Member, Pods
from shoal.controllers.queued_pods.refusing import Refusing
from shoal.controllers.queued_pods.roles import role_of
from shoal.controllers.queued_pods.scene import Scene
from shoal.controllers.queued_pods.serving import has_grown, role_in
from shoal.controllers.queued_pods.starting import into_domains, let_go
from shoal.controllers.queued_pods.workload_sight import WorkloadCondition, WorkloadSight
from shoal.controllers.queued_work.kueue_names import SLICE_NAME
from shoal.controllers.queued_work.pod_set_info import FlavorLookup, PodSetConflictError, pod_set_infos
from shoal.controllers.queued_work.quota_condition import Fault, lasting_fault
from shoal.controllers.queued_work.rules import JobRules
from shoal.store.live.item import Item, Obj
from shoal.store.live.kind import STATEFUL_SETS
from shoal.units.errors import UserError

_AGAIN_S = 1.0


class Driving:
    def __init__(self, hand: Hand, flavor: FlavorLookup, refusing: Refusing) -> None:
        self._hand = hand
        self._flavor = flavor
        self._refusing = refusing

    async def drive(
        self, scene: Scene, item: Item, workload: WorkloadSight, pods: Pods, rules: JobRules
    ) -> float | None:
        """Evicted: end; admitted: let go; neither: nothing runs."""
        evicted = workload.condition("Evicted")
        running = [one for one in pods if one[1].runs()]
        if evicted is not None and evicted.status == "True":
            await self._hand.stop(running, "WorkloadEvicted", evicted.message)
            if not running and workload.is_true("QuotaReserved"):
                await self._hand.write_status(item, course.give_back)
            return None
        if not workload.is_true("Admitted"):
            if running:
                await self._hand.stop(running, "NotAdmitted", "Not admitted by cluster queue")
                return None
            reserved = workload.condition("QuotaReserved") or WorkloadCondition()
            fault = lasting_fault(reserved.status, reserved.reason, reserved.message)
            await self._refusing.tell(scene, await self._keep_in_step(scene, item, workload) or fault)
            return None
        await self._refusing.tell(scene, None)
        parent = scene.parent
        if parent is not None and parent.kind != STATEFUL_SETS and has_grown(parent, workload):
            await self._anew(item, running)
            return None
        return await self._let_go(scene, item, pods, rules.schedulers)

    async def _let_go(self, scene: Scene, item: Item, pods: Pods, schedulers: frozenset[str]) -> float | None:
        """As many of each role as were admitted."""
        held = [one for one in pods if one[1].is_held() and not one[1].is_terminating()]
        if not held:
            return None
        workload = item.obj()
        try:
            patches = self._patches(scene, workload, (held, pods), schedulers)
        except PodSetConflictError as error:
            words = error.what
            await self._hand.write_status(item, lambda status, moment: course.fail_to_start(status, words, moment))
            return None
        if patches is None:
            return _AGAIN_S
        queue = workload["status"]["admission"]["clusterQueue"]
        await self._hand.start(patches, f"Admitted by clusterQueue {queue}")
        return None

    def _patches(
        self, scene: Scene, workload: Obj, held_of: tuple[Pods, Pods], schedulers: frozenset[str]
    ) -> list[tuple[Item, Obj]] | None:
        """For held pods as far as there is room for their role; None while a flavor is missing."""
        found = pod_set_infos(workload, self._flavor, schedulers)
        if found is None:
            return None
        held, pods = held_of
        if scene.parent is not None and scene.parent.kind == STATEFUL_SETS:
            note_of = {SLICE_NAME: scene.key[1]}
            found = [structs.replace(one, annotations={**one.annotations, **note_of}) for one in found]
        infos = {one.name: one for one in found}
        running = _by_role(scene, infos, [one for one in pods if one[1].runs()])
        note = scene.unit == "group"
        started = []
        for role, waiting in _by_role(scene, infos, held).items():
            if role not in infos:
                continue
            there = running.get(role, [])
            coming = waiting[: max(infos[role].count - len(there), 0)]
            for item, worn in into_domains(infos[role], there, coming):
                started.append((item, let_go(item.obj(), worn, role if note else "")))
        return started

    async def _anew(self, item: Item, running: Pods) -> None:
        """More replicas than were admitted: the whole is asked for again, once nothing of it holds room."""
        await self._hand.stop(running, "NoMatchingWorkload", "No matching Workload; restarting pod")
        if not running:
            await self._hand.discard(item)

    async def _keep_in_step(self, scene: Scene, item: Item, workload: WorkloadSight) -> Fault | None:
        """What waits asks for what its owner asks for now; why it cannot."""
        if workload.is_true("QuotaReserved"):
            return None
        spec: Obj = {}
        fault = None
        queue = scene.parent.queue if scene.parent is not None else scene.pods[0][1].queue if scene.pods else ""
        if queue and queue != workload.spec.queue_name:
            spec["queueName"] = queue
        if scene.parent is not None and scene.parent.counts() != workload.counts():
            try:
                spec["podSets"] = [one.to_api() for one in scene.parent.pod_sets]
            except UserError as error:
                fault = "ErrWorkloadCompose", str(error)
        if spec:
            await self._hand.amend(item, {"spec": spec})
        return fault


def _by_role(scene: Scene, names: Collection[str], pods: Pods) -> dict[str, list[Member]]:
    found: dict[str, list[Member]] = {}
    for one in pods:
        found.setdefault(_role(scene, names, one), []).append(one)
    return found


def _role(scene: Scene, names: Collection[str], one: Member) -> str:
    if scene.unit == "group":
        return role_of(one[0])
    if scene.unit == "pod":
        return next(iter(names), "main")
    return role_in(names, one[1])
