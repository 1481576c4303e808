"""Writes the statuses of pod groups, and records their changes as Events.

Some versions of Volcano's definitions have a status subresource and some do not: a status that the object itself did
not take is written to the subresource.

A condition message is written once it has not changed for a moment. The pods of a gang arrive and are refused one by
one, so the message passes through many counts within a second, none of which was ever decided. After a longer time
the message is written even if it keeps changing. Volcano writes it once per session, one second apart.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import VOLCANO_POD_GROUPS
from shoal.client.item import Item, Key, Obj
from shoal.client.port import Patch
from shoal.client.recorder import Recorder
from shoal.controllers.volcano.views import group_of
from shoal.engine.queues.disciplines.volcano.group_phases import READY, GroupPhaseResult
from shoal.engine.queues.disciplines.volcano.objects import GroupStatus, QueuedPodGroup, VolcanoCondition
from shoal.engine.queues.disciplines.volcano.pod_counts import GroupPodCounts

UNSCHEDULABLE, SCHEDULED = "Unschedulable", "Scheduled"


def next_status(group: QueuedPodGroup, pods: GroupPodCounts, result: GroupPhaseResult, now: str) -> GroupStatus:
    present = {one.type: one for one in group.status.conditions}
    if result.is_ready:
        present[SCHEDULED] = VolcanoCondition(SCHEDULED, "True", result.reason, "", now)
        if UNSCHEDULABLE in present:
            present[UNSCHEDULABLE] = VolcanoCondition(UNSCHEDULABLE, "False", result.reason, "", now)
    else:
        present[UNSCHEDULABLE] = VolcanoCondition(UNSCHEDULABLE, "True", result.reason, result.message, now)
        if SCHEDULED in present:
            present[SCHEDULED] = VolcanoCondition(SCHEDULED, "False", result.reason, "", now)
    before = {one.type: one for one in group.status.conditions}
    conditions = tuple(_kept(before.get(type_), one) for type_, one in present.items())
    counts = pods.of("Running"), pods.of("Succeeded"), pods.of("Failed")
    return GroupStatus(result.phase, *counts, conditions)


def is_reported(status: GroupStatus, result: GroupPhaseResult) -> bool:
    """Whether the status already has this condition."""
    wanted = (UNSCHEDULABLE, "True", result.reason, result.message)
    return any((one.type, one.status, one.reason, one.message) == wanted for one in status.conditions)


def _kept(before: VolcanoCondition | None, now: VolcanoCondition) -> VolcanoCondition:
    """An unchanged condition keeps its transition time."""
    if before is None:
        return now
    same = (before.status, before.reason, before.message) == (now.status, now.reason, now.message)
    return before if same else now


SETTLE_S = 1.0
"""Longer than a scheduling cycle and the writes that follow it."""
MAX_DELAY_S = 10.0


class _PendingMessage(NamedTuple):
    message: str
    since_s: float
    first_s: float
    """Since when a message other than the written one is due."""


class MessageDebounce:
    def __init__(self) -> None:
        self._pending: dict[Key, _PendingMessage] = {}

    @property
    def has_pending(self) -> bool:
        """Whether messages wait to be written."""
        return bool(self._pending)

    def is_stable(self, key: Key, message: str, now_s: float) -> bool:
        """Whether the message of a group, as it is in this pass, should be written."""
        pending = self._pending.get(key)
        if pending is None or pending.message != message:
            pending = self._pending[key] = _PendingMessage(
                message, now_s, pending.first_s if pending is not None else now_s
            )
        return now_s - pending.since_s >= SETTLE_S or now_s - pending.first_s >= MAX_DELAY_S

    def clear(self, key: Key) -> None:
        """The message was written, or none is needed."""
        self._pending.pop(key, None)

    def retain(self, groups: Container[str]) -> None:
        """Drops all groups but these (namespace/name)."""
        for key in [key for key in self._pending if "/".join(key) not in groups]:
            del self._pending[key]


class GroupStatusWriter:
    def __init__(self, context: Context, events: Recorder) -> None:
        self._api = context.api
        self._events = events
        self._has_subresource = False

    async def write(self, item: Item, group: QueuedPodGroup, status: GroupStatus) -> None:
        body: Obj = {"metadata": {"resourceVersion": group.metadata.resource_version}, "status": _to_api(status)}
        patch = Patch("merge", body)
        if not self._has_subresource:
            written = await self._api.patch(VOLCANO_POD_GROUPS, *item.key, patch)
            read = group_of(written)
            if read is None or read.status == status:
                return
            self._has_subresource = True
            body["metadata"]["resourceVersion"] = str(written.version)
        await self._api.patch(VOLCANO_POD_GROUPS, *item.key, patch, "status")

    def record_events(self, regarding: Obj, before: GroupStatus, after: GroupStatus, quota: str) -> None:
        """Records changed conditions as Events. `quota`: why the open queue does not admit the group."""
        previous = {one.type: one for one in before.conditions}
        for one in after.conditions:
            if one.status != "True" or previous.get(one.type) == one:
                continue
            if one.type == UNSCHEDULABLE:
                self._events.record(regarding, UNSCHEDULABLE, one.message, type_="Warning")
            elif one.type == SCHEDULED:
                self._events.record(regarding, SCHEDULED, READY)
        if quota and quota not in "".join(one.message for one in previous.values()):
            self._events.record(regarding, UNSCHEDULABLE, quota)


def _to_api(status: GroupStatus) -> Obj:
    conditions = [
        {
            "type": one.type,
            "status": one.status,
            "reason": one.reason,
            "message": one.message,
            "lastTransitionTime": one.last_transition_time,
        }
        for one in status.conditions
    ]
    counts = {"running": status.running, "succeeded": status.succeeded, "failed": status.failed}
    return {"phase": status.phase, **counts, "conditions": conditions}
