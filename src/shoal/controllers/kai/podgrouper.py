"""Creates a PodGroup for the pods of each owner that uses KAI's scheduler, as KAI's podgrouper does.

Users of KAI do not write PodGroups. The top owner of the pods has one, built by the rule for the owner's kind, and the
pods name it in an annotation. Shoal writes the same objects with the same names, so that users see the gangs with
`kubectl get podgroups.scheduling.run.ai`, a gang survives a restart, KAI itself continues with them when it is
installed, and other readers of gangs need not know the kinds of owners.

Guarantees: a pod is held back from the facts until its group is written, so that no pod of a gang starts alone. The
group is created before a pod names it. A pod that names a group already is not changed. A queue that a user set on the
group later is kept, as in KAI.

Rejected: deriving gangs while reading the cluster, without objects. Each read of a pod would have to know a dozen kinds
of owners, and statuses, Events and queues would have no object to refer to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from shoal.api.groups.kai import GROUP_ANNOTATION, NODE_POOL_LABEL, SUB_GROUP_LABEL
from shoal.api.pod import Pod
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.wire import dec_hook
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import PODS, Kind
from shoal.client.loop import Loop
from shoal.client.port import Patch
from shoal.client.refusals import AlreadyExistsError
from shoal.client.served import Served
from shoal.client.unscheduled_condition import Unscheduled
from shoal.controllers.kai.desired_pod_group import DesiredPodGroup, desired_pod_group, group_owner
from shoal.controllers.kai.owner_chains import OwnerChains, OwnerMissingError
from shoal.controllers.kai.workload_object import WorkloadObject, at, workload_object
from shoal.engine.events import Event, PodArrived
from shoal.engine.from_api.membership import group_of
from shoal.units.errors import UserError, Where

_log = logging.getLogger("shoal.kai")
SCHEDULER = "kai-scheduler"
_MARK = SCHEDULER.encode()
_RETRY_S = 30.0
"""The time after which an invalid owner is read again."""
_pod_decoder = msgspec.json.Decoder(Pod, dec_hook=dec_hook)


class PodGrouper:
    def __init__(
        self,
        context: Context,
        served: Served,
        is_kai_absent: Callable[[], bool],
        pool_label: Callable[[], str] = lambda: NODE_POOL_LABEL,
    ) -> None:
        """`is_kai_absent`: whether KAI itself does not run; otherwise its own podgrouper writes. `pool_label`: which
        label names the node pool."""
        self._pool_label = pool_label
        self._context = context
        self._is_kai_absent = is_kai_absent
        self._pods = context.informers.of(PODS)
        self._chains = OwnerChains(context)
        self._unscheduled = Unscheduled(context.api, context.clock, context.events)
        self._held: dict[str, PodArrived] = {}
        """Held pods, whose group is not written yet."""
        self._is_served = False
        self._loop = Loop(context, self._reconcile)
        self._loop.need(PODS)
        served.when_there(KAI_POD_GROUPS, self._kind_served)

    @property
    def is_on(self) -> bool:
        return self._is_served and self._is_kai_absent()

    def holds(self, event: PodArrived) -> bool:
        """Whether the pod has to wait until its group is written."""
        item = self._pods.get(*event.key.split("/", 1)) if self.is_on else None
        if item is None or not _lacks_group(item):
            self._held.pop(event.key, None)
            return False
        self._held[event.key] = event
        return True

    def forget(self, pod: str) -> None:
        self._held.pop(pod, None)

    def release_all(self) -> list[Event]:
        """Releases all held pods, because groups are no longer written here."""
        held, self._held = self._held, {}
        return list(held.values())

    def wake(self) -> None:
        """Handles pods that arrived while it was off."""
        for item in self._pods:
            for key in _without_group(item):
                self._loop.wake(key)

    async def run(self) -> None:
        """Runs until cancelled."""
        await self._loop.run()

    # internals

    def _kind_served(self, kind: Kind) -> None:
        self._is_served = True
        self._context.informers.of(kind)
        self._loop.need(kind)
        self._loop.follow(PODS, _without_group, only_latest=True)
        self.wake()

    async def _reconcile(self, key: Key) -> float | None:
        item = self._pods.get(*key)
        if item is None or not self.is_on or not _lacks_group(item):
            return None
        pod = workload_object(PODS.api_version, PODS.name, item)
        try:
            desired = await self._desired_pod_group(pod)
        except UserError as error:
            await self._report_error(item, str(error))
            return _RETRY_S
        except OwnerMissingError as error:
            if self._context.clock.seconds() - _created_s(item) > _RETRY_S:
                await self._report_error(item, str(error))
            raise
        await self._write_group(pod.namespace, desired)
        meta: Obj = {"uid": pod.uid, "annotations": {GROUP_ANNOTATION: desired.name}}
        if desired.part:
            meta["labels"] = {SUB_GROUP_LABEL: desired.part}
        await self._context.api.patch(PODS, *key, Patch("merge", {"metadata": meta}))
        return None

    async def _desired_pod_group(self, pod: WorkloadObject) -> DesiredPodGroup:
        chain = await self._chains.owners_of(pod)
        return desired_pod_group(
            pod, chain, await self._ray_cluster(group_owner(pod, chain), chain), self._pool_label()
        )

    async def _ray_cluster(self, owner: WorkloadObject, chain: list[WorkloadObject]) -> WorkloadObject | None:
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

    async def _write_group(self, namespace: str, desired: DesiredPodGroup) -> None:
        known = self._context.informers.of(KAI_POD_GROUPS).get(namespace, desired.name)
        if known is None:
            meta: Obj = {
                "namespace": namespace,
                "name": desired.name,
                "labels": desired.labels,
                "annotations": desired.annotations,
                "ownerReferences": [desired.owner.reference()],
            }
            try:
                await self._context.api.create(KAI_POD_GROUPS, {"metadata": meta, "spec": desired.spec})
            except AlreadyExistsError:
                # The reconcile of another pod of the same owner created it.
                return
            return
        before = known.obj().get("spec") or {}
        body = {name: value for name, value in desired.spec.items() if name != "queue" and before.get(name) != value}
        if body:
            patch = Patch("merge", {"metadata": {"uid": known.uid}, "spec": body})
            await self._context.api.patch(KAI_POD_GROUPS, namespace, desired.name, patch)

    async def _report_error(self, item: Item, message: str) -> None:
        meta = {"name": item.name, "namespace": item.namespace, "uid": item.uid}
        regarding = {"kind": PODS.name, "apiVersion": PODS.api_version, "metadata": meta}
        self._context.events.named("pod-grouper").record(regarding, "PodGrouperWarning", message, type_="Warning")
        if not self._unscheduled.is_reported(item, message):
            await self._unscheduled.report(item, message)


def _without_group(item: Item) -> tuple[Key, ...]:
    return (item.key,) if _lacks_group(item) else ()


def _lacks_group(item: Item) -> bool:
    """Whether a pod of KAI's scheduler belongs to no group, of KAI or of another project."""
    pod = _read(item)
    if pod is None or pod.spec.scheduler_name != SCHEDULER or pod.status.phase in TERMINAL_PHASES:
        return False
    if pod.metadata.deletion_timestamp is not None:
        return False
    try:
        return not group_of(pod, Where())
    except UserError:
        return False


def _read(item: Item) -> Pod | None:
    """None for pods of other schedulers, and for pods that cannot be decoded."""
    if _MARK not in item.data:
        return None
    try:
        return _pod_decoder.decode(item.data)
    except (msgspec.DecodeError, ValueError):
        return None


def _created_s(item: Item) -> float:
    pod = _read(item)
    created = pod.metadata.creation_timestamp if pod is not None else None
    return 0.0 if created is None else created.timestamp()
