"""Creates a pod group for each pod of Volcano's scheduler that belongs to no group.

Pods of one controller share a group, which is named after the controller and deleted with it; a pod without a
controller gets its own group. The owner's annotation gives the minimum; the default is one. The group is created before
the pod names it, and each step is checked again, so that a crash in between leaves nothing undone and creates nothing
twice.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.api.pod import Pod
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.wire import ApiStruct
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import VOLCANO_POD_GROUPS
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import DAEMON_SETS, JOBS, PODS, REPLICA_SETS, STATEFUL_SETS
from shoal.client.loop import Loop
from shoal.client.port import Patch
from shoal.client.refusals import AlreadyExistsError, NotFoundError
from shoal.controllers.volcano.names import GROUP_MIN_MEMBER, GROUP_PREFIX, INHERITED_PREFIX
from shoal.controllers.volcano.views import ViewReader, pod_of
from shoal.engine.from_api.membership import group_of as membership_of
from shoal.engine.queues.disciplines.volcano.amounts import Amounts, multiplied, requests_of, to_api
from shoal.engine.queues.disciplines.volcano.objects import (
    GROUP,
    QUEUE_ANNOTATION,
    SCHEDULER,
    GroupPod,
    VolcanoMeta,
    VolcanoOwner,
)
from shoal.units.errors import UserError, Where

_OWNERS = {kind.name: kind for kind in (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS)}
_SCHEDULER = SCHEDULER.encode()
_pod_view = ViewReader(Pod)


class _PodOwner(ApiStruct, frozen=True):
    """The metadata of an owner of pods."""

    metadata: VolcanoMeta


_pod_owner = ViewReader(_PodOwner)


class PodGroupController:
    def __init__(self, context: Context, is_volcano_absent: Callable[[], bool]) -> None:
        self._api = context.api
        self._is_volcano_absent = is_volcano_absent
        self._pods = context.informers.of(PODS)
        self._groups = context.informers.of(VOLCANO_POD_GROUPS)
        self.loop = Loop(context, self._reconcile)
        self.loop.need(VOLCANO_POD_GROUPS)
        self.loop.follow(PODS, _without_group, only_latest=True)

    def wake(self) -> None:
        for item in self._pods:
            for key in _without_group(item):
                self.loop.wake(key)

    async def _reconcile(self, key: Key) -> float | None:
        item = self._pods.get(*key)
        pod = pod_of(item) if item is not None and self._is_volcano_absent() else None
        if item is None or pod is None or not _lacks_group(item, pod):
            return None
        full_pod = _pod_view(item)
        if full_pod is None:
            return None
        name = group_name(pod)
        if self._groups.get(key[0], name) is None:
            await self._create_group(pod, name, requests_of(full_pod.spec))
        body = {"metadata": {"uid": item.uid, "annotations": {GROUP: name}}}
        await self._api.patch(PODS, *key, Patch("merge", body))
        return None

    async def _create_group(self, pod: GroupPod, name: str, requests: Amounts) -> None:
        annotations = await self._owner_annotations(pod)
        minimum = _min_member(annotations)
        inherited = {
            key: value
            for key, value in {**annotations, **pod.metadata.annotations}.items()
            if key.startswith(INHERITED_PREFIX)
        }
        spec: Obj = {"minMember": minimum, "minResources": to_api(multiplied(requests, minimum))}
        if pod.spec.priority_class_name:
            spec["priorityClassName"] = pod.spec.priority_class_name
        if queue := pod.metadata.annotations.get(QUEUE_ANNOTATION):
            spec["queue"] = queue
        metadata = {
            "namespace": pod.metadata.namespace,
            "name": name,
            "ownerReferences": _owners(pod),
            "annotations": inherited,
        }
        try:
            await self._api.create(VOLCANO_POD_GROUPS, {"metadata": metadata, "spec": spec})
        except AlreadyExistsError:
            # The reconcile of another pod of the same owner created it.
            return

    async def _owner_annotations(self, pod: GroupPod) -> dict[str, str]:
        owner = pod.metadata.controller()
        kind = _OWNERS.get(owner.kind) if owner is not None else None
        if owner is None or kind is None or owner.api_version != kind.api_version:
            return {}
        try:
            found = _pod_owner(await self._api.get(kind, pod.metadata.namespace, owner.name))
        except NotFoundError:
            return {}
        return {} if found is None else dict(found.metadata.annotations)


def group_name(pod: GroupPod) -> str:
    owner = pod.metadata.controller()
    return GROUP_PREFIX + (owner.uid if owner is not None else pod.metadata.uid)


def _without_group(item: Item) -> tuple[Key, ...]:
    pod = pod_of(item) if _SCHEDULER in item.data else None
    return (item.key,) if pod is not None and _lacks_group(item, pod) else ()


def _lacks_group(item: Item, pod: GroupPod) -> bool:
    if pod.spec.scheduler_name != SCHEDULER or pod.is_terminating or pod.status.phase in TERMINAL_PHASES or pod.group:
        return False
    full_pod = _pod_view(item)
    try:
        # The pod may belong to a group of another project: a pod has one group.
        return full_pod is not None and not membership_of(full_pod, Where())
    except UserError:
        return False


def _min_member(annotations: dict[str, str]) -> int:
    text = annotations.get(GROUP_MIN_MEMBER, "1")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1


def _owners(pod: GroupPod) -> list[Obj]:
    owner = pod.metadata.controller()
    if owner is None:
        owner = VolcanoOwner(PODS.api_version, PODS.name, pod.metadata.name, pod.metadata.uid, True, True)
    return [
        {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": owner.name,
            "uid": owner.uid,
            "controller": True,
            "blockOwnerDeletion": owner.block_owner_deletion,
        }
    ]
