"""A pod group for every pod that Volcano's scheduler is to place and that belongs to none.

Pods of one controller share a group, which is named after it and ends with it; a pod on its own has one to itself. How
many must start together says the owner's annotation, or it is one. The group is there before the pod names it, and both
are looked for again each time, so that a death in between leaves nothing undone and nothing doubled.
"""

from __future__ import annotations

from shoal.api.pod import Pod
from shoal.api.wire import ApiStruct
from shoal.controllers.volcano.absence import IsAway
from shoal.controllers.volcano.amounts import times, to_api
from shoal.controllers.volcano.names import (
    GROUP,
    GROUP_MINIMUM,
    GROUP_PREFIX,
    GROUP_QUEUE,
    INHERITED_PREFIX,
    SCHEDULER,
)
from shoal.controllers.volcano.sights import ENDED, GroupPod, Meta, Owner, Reader, pod_of
from shoal.engine.from_api.membership import group_of as group_named
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import VOLCANO_POD_GROUPS
from shoal.store.live.item import Item, Key, Obj
from shoal.store.live.kind import DAEMON_SETS, JOBS, PODS, REPLICA_SETS, STATEFUL_SETS
from shoal.store.live.loop import Loop
from shoal.store.live.port import Patch
from shoal.store.live.refusals import AlreadyExistsError, NotFoundError
from shoal.units.errors import UserError, Where

_OWNERS = {kind.name: kind for kind in (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS)}
_SCHEDULER = SCHEDULER.encode()
_whole_pod = Reader(Pod)


class _Owning(ApiStruct, frozen=True):
    """Whatever owns pods."""

    metadata: Meta


_owning = Reader(_Owning)


class GroupMaking:
    def __init__(self, context: Context, is_away: IsAway) -> None:
        self._api = context.api
        self._is_away = is_away
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
        pod = pod_of(item) if item is not None and self._is_away() else None
        if item is None or pod is None or not _lacks_group(item, pod):
            return None
        name = group_name(pod)
        if self._groups.get(key[0], name) is None:
            await self._make(pod, name)
        body = {"metadata": {"uid": item.uid, "annotations": {GROUP: name}}}
        await self._api.patch(PODS, *key, Patch("merge", body))
        return None

    async def _make(self, pod: GroupPod, name: str) -> None:
        notes = await self._notes_of_owner(pod)
        least = _least(notes)
        inherited = {
            key: value
            for key, value in {**notes, **pod.metadata.annotations}.items()
            if key.startswith(INHERITED_PREFIX)
        }
        spec: Obj = {"minMember": least, "minResources": to_api(times(pod.requests(), least))}
        if pod.spec.priority_class_name:
            spec["priorityClassName"] = pod.spec.priority_class_name
        if queue := pod.metadata.annotations.get(GROUP_QUEUE):
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
            # Another pod of the same owner was quicker.
            return

    async def _notes_of_owner(self, pod: GroupPod) -> dict[str, str]:
        owner = pod.metadata.controller()
        kind = _OWNERS.get(owner.kind) if owner is not None else None
        if owner is None or kind is None or owner.api_version != kind.api_version:
            return {}
        try:
            found = _owning(await self._api.get(kind, pod.metadata.namespace, owner.name))
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
    if pod.spec.scheduler_name != SCHEDULER or pod.is_leaving or pod.status.phase in ENDED or pod.group:
        return False
    whole = _whole_pod(item)
    try:
        # Of another project, perhaps: a pod belongs to one group.
        return whole is not None and not group_named(whole, Where())
    except UserError:
        return False


def _least(notes: dict[str, str]) -> int:
    text = notes.get(GROUP_MINIMUM, "1")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1


def _owners(pod: GroupPod) -> list[Obj]:
    owner = pod.metadata.controller()
    if owner is None:
        owner = Owner(PODS.api_version, PODS.name, pod.metadata.name, pod.metadata.uid, True, True)
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
