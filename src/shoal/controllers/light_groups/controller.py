"""Writes the status of scheduler-plugins' PodGroups, where the project's own controller does not run.

Guarantees: nothing is written while that controller runs, nor to a finished group, and only changed fields are
written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec
from msgspec import field

from shoal.api.partial import OwnedMeta, PodPhaseStatus
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import LIGHT_POD_GROUPS
from shoal.client.item import Item, Key, Obj, Seen
from shoal.client.kind import PODS
from shoal.client.loop import Loop
from shoal.client.port import Patch
from shoal.client.presence import SCHEDULER_PLUGINS, Presence
from shoal.client.served import Served
from shoal.controllers.light_groups.group_phase import FINAL, PENDING, GroupMember, GroupProgress, group_progress
from shoal.engine.from_api.membership import SCHEDULER_PLUGINS_LABEL

_MARK = SCHEDULER_PLUGINS_LABEL.encode()
_INDEX = "light-group"
_GATHER_S = 0.2
"""The delay that combines the changes of a gang's pods."""


class _MemberPod(msgspec.Struct, gc=False):
    metadata: OwnedMeta
    status: PodPhaseStatus = field(default_factory=PodPhaseStatus)


class _SchedulingPodGroupSpec(msgspec.Struct, rename="camel", gc=False):
    min_member: int | None = None


class _SchedulingPodGroupStatus(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None


class _SchedulingPodGroup(msgspec.Struct, gc=False):
    spec: _SchedulingPodGroupSpec = field(default_factory=_SchedulingPodGroupSpec)
    status: _SchedulingPodGroupStatus = field(default_factory=_SchedulingPodGroupStatus)


_pod: Seen[_MemberPod] = Seen(_MemberPod)


def light_groups_controller(context: Context, served: Served, namespace: str = "") -> Controller:
    """The caller refreshes `served`; `namespace`: where scheduler-plugins is installed."""
    return LightGroups(context, served, Presence(context, SCHEDULER_PLUGINS, namespace))


class LightGroups:
    def __init__(self, context: Context, served: Served, presence: Presence) -> None:
        self.name = context.name
        self._context = context
        self._presence = presence
        self._found = asyncio.Event()
        self._loop = Loop(context, self._reconcile)
        served.when_there(LIGHT_POD_GROUPS, lambda _: self._start())

    async def run(self) -> None:
        """Runs until cancelled. Pods are read only once the API server serves these groups."""
        await self._found.wait()
        await self._presence.look()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._presence.run(self._wake_all))
            group.create_task(self._loop.run())

    def _start(self) -> None:
        self._loop.follow(LIGHT_POD_GROUPS)
        self._loop.need(PODS)
        self._context.informers.of(PODS).on_change(self._pod_changed)
        self._found.set()

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        for item in (before, after):
            if item is not None:
                for name in _groups_of(item):
                    self._loop.wake((item.namespace, name.partition("/")[2]), _GATHER_S)

    def _wake_all(self) -> None:
        for item in self._context.informers.of(LIGHT_POD_GROUPS):
            self._loop.wake(item.key)

    async def _reconcile(self, key: Key) -> None:
        item = self._context.informers.of(LIGHT_POD_GROUPS).get(*key)
        if item is None or self._presence.is_there:
            return
        group = item.read(_SchedulingPodGroup)
        if group.status.phase in FINAL:
            return
        items = self._context.informers.of(PODS).index(_INDEX, _groups_of)["/".join(key)]
        members = sorted((_member(one) for one in items), key=lambda one: one.name)
        progress = group_progress(members, max(group.spec.min_member or 1, 1), item.namespace)
        status = self._changed(group.status, progress)
        if status:
            preconditions = {"uid": item.uid, "resourceVersion": str(item.version)}
            patch = Patch("merge", {"metadata": preconditions, "status": status})
            await self._context.api.patch(LIGHT_POD_GROUPS, *key, patch, "status")

    def _changed(self, before: _SchedulingPodGroupStatus, progress: GroupProgress) -> Obj:
        wanted: Obj = {
            name: getattr(progress, name)
            for name in ("phase", "running", "succeeded", "failed")
            if getattr(progress, name) != getattr(before, name)
        }
        if progress.occupied_by and not before.occupied_by:
            wanted["occupiedBy"] = progress.occupied_by
        if progress.phase != PENDING and before.schedule_start_time is None:
            wanted["scheduleStartTime"] = self._context.clock.text()
        return wanted


def _member(item: Item) -> GroupMember:
    pod = _pod(item)
    return GroupMember(item.name, pod.status.phase, tuple(one.name for one in pod.metadata.owner_references))


def _groups_of(item: Item) -> Iterable[str]:
    name = _pod(item).metadata.labels.get(SCHEDULER_PLUGINS_LABEL, "") if _MARK in item.data else ""
    return [f"{item.namespace}/{name}"] if name else []
