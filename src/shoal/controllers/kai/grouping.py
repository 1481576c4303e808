"""The podgrouper: a PodGroup for the pods of every owner that names KAI's scheduler, where people write none.

With KAI nobody writes PodGroups. Whoever owns the pods at the very top has one, made from what that owner's kind says,
and pods name it in an annotation. The same objects are written here, under the same names, so that people see the gangs
where they look for them (`kubectl get podgroups.scheduling.run.ai`), a gang outlives a restart, KAI itself goes on with
them when it comes, and what reads gangs elsewhere needs to know nothing of KAI's kinds.

Promises: until its group is written, a pod is kept from the facts, so that none of a gang goes ahead alone; the group
is there before a pod names it; whoever names a group himself is left alone. A queue that somebody set on the group
later stays, as with KAI.

Rejected: gangs derived by whoever reads the world, without objects. It would have to know a dozen kinds of owners at
every read of a pod, and statuses, events and queues would have nothing to stand on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from shoal.api.groups.kai import GROUP_ANNOTATION, SUB_GROUP_LABEL
from shoal.api.pod import Pod
from shoal.api.wire import dec_hook
from shoal.controllers.kai.group_plans import Plan, group_owner, plan_of
from shoal.controllers.kai.owned import Owned, at, owned_of
from shoal.controllers.kai.owner_chains import OwnerChains, OwnerMissingError
from shoal.engine.events import Event, PodArrived
from shoal.engine.from_api.membership import group_of
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import KAI_POD_GROUPS
from shoal.store.live.item import Item, Key, Obj
from shoal.store.live.kind import PODS, Kind
from shoal.store.live.loop import Loop
from shoal.store.live.port import Patch
from shoal.store.live.refusals import AlreadyExistsError
from shoal.store.live.served import Served
from shoal.store.live.unscheduled import Unscheduled
from shoal.units.errors import UserError, Where

_log = logging.getLogger("shoal.kai")
SCHEDULER = "kai-scheduler"
_MARK = SCHEDULER.encode()
_AGAIN_S = 30.0
"""After this an owner that could not be understood is looked at again."""
_OVER = frozenset({"Succeeded", "Failed"})
_whole_pods = msgspec.json.Decoder(Pod, dec_hook=dec_hook)


class Grouping:
    def __init__(self, context: Context, served: Served, is_away: Callable[[], bool]) -> None:
        """`is_away`: whether KAI itself is; where it runs, its own podgrouper writes."""
        self._context = context
        self._is_away = is_away
        self._pods = context.informers.of(PODS)
        self._chains = OwnerChains(context)
        self._unscheduled = Unscheduled(context.api, context.clock, context.events)
        self._kept: dict[str, PodArrived] = {}
        """Pods whose group is not written yet."""
        self._is_there = False
        self._loop = Loop(context, self._reconcile)
        self._loop.need(PODS)
        served.when_there(KAI_POD_GROUPS, self._came)

    @property
    def is_on(self) -> bool:
        return self._is_there and self._is_away()

    def keeps(self, event: PodArrived) -> bool:
        """Whether it has to wait for its group to be written."""
        item = self._pods.get(*event.key.split("/", 1)) if self.is_on else None
        if item is None or not _lacks_group(item):
            self._kept.pop(event.key, None)
            return False
        self._kept[event.key] = event
        return True

    def forget(self, pod: str) -> None:
        self._kept.pop(pod, None)

    def let_go(self) -> list[Event]:
        """Nobody writes groups here any more."""
        kept, self._kept = self._kept, {}
        return list(kept.values())

    def wake(self) -> None:
        """Pods that came while it was off."""
        for item in self._pods:
            for key in _without_group(item):
                self._loop.wake(key)

    async def run(self) -> None:
        """Until cancelled."""
        await self._loop.run()

    # Inside

    def _came(self, kind: Kind) -> None:
        self._is_there = True
        self._context.informers.of(kind)
        self._loop.need(kind)
        self._loop.follow(PODS, _without_group, only_latest=True)
        self.wake()

    async def _reconcile(self, key: Key) -> float | None:
        item = self._pods.get(*key)
        if item is None or not self.is_on or not _lacks_group(item):
            return None
        pod = owned_of(PODS.api_version, PODS.name, item)
        try:
            plan = await self._plan(pod)
        except UserError as error:
            await self._complain(item, str(error))
            return _AGAIN_S
        except OwnerMissingError as error:
            if self._context.clock.seconds() - _created_s(item) > _AGAIN_S:
                await self._complain(item, str(error))
            raise
        await self._put(pod.namespace, plan)
        meta: Obj = {"uid": pod.uid, "annotations": {GROUP_ANNOTATION: plan.name}}
        if plan.part:
            meta["labels"] = {SUB_GROUP_LABEL: plan.part}
        await self._context.api.patch(PODS, *key, Patch("merge", {"metadata": meta}))
        return None

    async def _plan(self, pod: Owned) -> Plan:
        chain = await self._chains.above(pod)
        return plan_of(pod, chain, await self._ray_cluster(group_owner(pod, chain), chain))

    async def _ray_cluster(self, owner: Owned, chain: list[Owned]) -> Owned | None:
        if owner.group_kind[0] != "ray.io":
            return None
        for one in chain:
            if one.kind == "RayCluster":
                return one
        status = owner.mapping("status")
        paths = (("rayClusterName",), ("activeServiceStatus", "rayClusterName"))
        for path in (*paths, ("pendingServiceStatus", "rayClusterName")):
            if isinstance(name := at(status, *path), str) and name:
                return await self._chains.named(owner.api_version, "RayCluster", owner.namespace, name)
        return None

    async def _put(self, namespace: str, plan: Plan) -> None:
        known = self._context.informers.of(KAI_POD_GROUPS).get(namespace, plan.name)
        if known is None:
            meta: Obj = {
                "namespace": namespace,
                "name": plan.name,
                "labels": plan.labels,
                "annotations": plan.annotations,
                "ownerReferences": [plan.owner.reference()],
            }
            try:
                await self._context.api.create(KAI_POD_GROUPS, {"metadata": meta, "spec": plan.spec})
            except AlreadyExistsError:
                # Another pod of the same owner was quicker.
                return
            return
        before = known.obj().get("spec") or {}
        body = {name: value for name, value in plan.spec.items() if name != "queue" and before.get(name) != value}
        if body:
            patch = Patch("merge", {"metadata": {"uid": known.uid}, "spec": body})
            await self._context.api.patch(KAI_POD_GROUPS, namespace, plan.name, patch)

    async def _complain(self, item: Item, words: str) -> None:
        meta = {"name": item.name, "namespace": item.namespace, "uid": item.uid}
        about = {"kind": PODS.name, "apiVersion": PODS.api_version, "metadata": meta}
        self._context.events.named("pod-grouper").record(about, "PodGrouperWarning", words, type_="Warning")
        if not self._unscheduled.is_told(item, words):
            await self._unscheduled.tell(item, words)


def _without_group(item: Item) -> tuple[Key, ...]:
    return (item.key,) if _lacks_group(item) else ()


def _lacks_group(item: Item) -> bool:
    """A pod for KAI's scheduler that nobody has put into a group, of KAI's or of another project."""
    pod = _read(item)
    if pod is None or pod.spec.scheduler_name != SCHEDULER or pod.status.phase in _OVER:
        return False
    if pod.metadata.deletion_timestamp is not None:
        return False
    try:
        return not group_of(pod, Where())
    except UserError:
        return False


def _read(item: Item) -> Pod | None:
    """None for pods of others, and for those that nobody can read."""
    if _MARK not in item.data:
        return None
    try:
        return _whole_pods.decode(item.data)
    except (msgspec.DecodeError, ValueError):
        return None


def _created_s(item: Item) -> float:
    pod = _read(item)
    created = pod.metadata.creation_timestamp if pod is not None else None
    return 0.0 if created is None else created.timestamp()
