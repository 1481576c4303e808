"""The status of a pod group as it is written, and the writing.

Some versions of Volcano's definitions give the status a door of its own and some do not: what the object itself did not
take is written through the door.
"""

from __future__ import annotations

from shoal.controllers.volcano.phases import READY, Verdict
from shoal.controllers.volcano.sights import Condition, GroupStatus, PodGroup, group_of
from shoal.controllers.volcano.tallies import Tally
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import VOLCANO_POD_GROUPS
from shoal.store.live.item import Item, Obj
from shoal.store.live.port import Patch
from shoal.store.live.recorder import Recorder

UNSCHEDULABLE, SCHEDULED = "Unschedulable", "Scheduled"


def status_of(group: PodGroup, known: Tally, verdict: Verdict, now: str) -> GroupStatus:
    present = {one.type: one for one in group.status.conditions}
    if verdict.is_ready:
        present[SCHEDULED] = Condition(SCHEDULED, "True", verdict.reason, "", now)
        if UNSCHEDULABLE in present:
            present[UNSCHEDULABLE] = Condition(UNSCHEDULABLE, "False", verdict.reason, "", now)
    else:
        present[UNSCHEDULABLE] = Condition(UNSCHEDULABLE, "True", verdict.reason, verdict.message, now)
        if SCHEDULED in present:
            present[SCHEDULED] = Condition(SCHEDULED, "False", verdict.reason, "", now)
    before = {one.type: one for one in group.status.conditions}
    conditions = tuple(_kept(before.get(type_), one) for type_, one in present.items())
    counts = known.of("Running"), known.of("Succeeded"), known.of("Failed")
    return GroupStatus(verdict.phase, *counts, conditions)


def says(status: GroupStatus, verdict: Verdict) -> bool:
    """Whether it is said already why the group waits."""
    wanted = (UNSCHEDULABLE, "True", verdict.reason, verdict.message)
    return any((one.type, one.status, one.reason, one.message) == wanted for one in status.conditions)


def _kept(before: Condition | None, now: Condition) -> Condition:
    """One that says the same as before says it since then."""
    if before is None:
        return now
    same = (before.status, before.reason, before.message) == (now.status, now.reason, now.message)
    return before if same else now


class GroupPen:
    def __init__(self, context: Context, events: Recorder) -> None:
        self._api = context.api
        self._events = events
        self._has_door = False

    async def write(self, item: Item, group: PodGroup, status: GroupStatus) -> None:
        body: Obj = {"metadata": {"resourceVersion": group.metadata.resource_version}, "status": _to_api(status)}
        patch = Patch("merge", body)
        if not self._has_door:
            written = await self._api.patch(VOLCANO_POD_GROUPS, *item.key, patch)
            read = group_of(written)
            if read is None or read.status == status:
                return
            self._has_door = True
            body["metadata"]["resourceVersion"] = str(written.version)
        await self._api.patch(VOLCANO_POD_GROUPS, *item.key, patch, "status")

    def tell(self, about: Obj, before: GroupStatus, after: GroupStatus, quota: str) -> None:
        """What changed, in Events. `quota`: why its queue does not let it in though it is open."""
        told = {one.type: one for one in before.conditions}
        for one in after.conditions:
            if one.status != "True" or told.get(one.type) == one:
                continue
            if one.type == UNSCHEDULABLE:
                self._events.record(about, UNSCHEDULABLE, one.message, type_="Warning")
            elif one.type == SCHEDULED:
                self._events.record(about, SCHEDULED, READY)
        if quota and quota not in "".join(one.message for one in told.values()):
            self._events.record(about, UNSCHEDULABLE, quota)


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
