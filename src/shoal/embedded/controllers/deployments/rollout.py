"""Reconciles a deployment: moves it one step towards its template, and updates its status.

Each step changes sizes of ReplicaSets according to their current status; the next change of a status triggers the next
step. A crash between two steps loses nothing, because all state is in the objects.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.clock import Clock
from shoal.client.item import Obj
from shoal.embedded.controllers.deployments import conditions, revision_annotations
from shoal.embedded.controllers.deployments.replica_sets import Sets, asked, notes
from shoal.embedded.controllers.deployments.sizes import new_size, old_sizes, shared_out, slack
from shoal.embedded.controllers.deployments.status import counted, has_deadline, is_complete, rolled
from shoal.embedded.controllers.deployments.templates import by_age

HasPods = Callable[[Obj], bool]
"""Returns whether a ReplicaSet still has unfinished pods, including terminating ones."""


class Rollout:
    def __init__(self, sets: Sets, clock: Clock, has_pods: HasPods) -> None:
        self._sets = sets
        self._clock = clock
        self._has_pods = has_pods

    async def step(self) -> float | None:
        """Returns the seconds until the next check of the progress deadline."""
        sets = self._sets
        if "deletionTimestamp" in sets.deployment["metadata"]:
            await sets.revised(may_create=False)
            await self._tell_counts()
            return None
        await self._note_pause()
        spec = sets.deployment["spec"]
        if spec.get("paused") or self._was_scaled():
            await sets.revised(may_create=False)
            await self._resize()
            if spec.get("paused"):
                await sets.forget_oldest()
            await self._tell_counts()
            return None
        if spec["strategy"]["type"] == "Recreate":
            await self._recreate()
        else:
            await self._roll()
        return await self._tell_progress()

    # -- strategies -------------------------------------------------------------------------------------------------

    async def _roll(self) -> None:
        sets = self._sets
        await sets.revised(may_create=True)
        new = sets.new
        if new is None or await self._sized_new(new):
            return
        if await self._sized_old(new):
            return
        await self._tidy()

    async def _sized_new(self, new: Obj) -> bool:
        sets = self._sets
        size, name = asked(new), new["metadata"]["name"]
        if size == sets.wanted:
            return False
        if size > sets.wanted:
            return await sets.scale(name, sets.wanted)
        surge = slack(sets.deployment["spec"]).surge
        size = new_size(sets.wanted, "RollingUpdate", surge, size, sum(map(asked, sets.all)))
        return await sets.scale(name, size)

    async def _sized_old(self, new: Obj) -> bool:
        sets = self._sets
        unavailable = slack(sets.deployment["spec"]).unavailable
        old = [one for one in sets.old if asked(one)]
        changes = old_sizes(sets.wanted, unavailable, sets.sizes([new])[0], sets.sizes(old)) if old else {}
        for name, size in changes.items():
            await sets.scale(name, size)
        return bool(changes)

    async def _recreate(self) -> None:
        sets = self._sets
        await sets.revised(may_create=False)
        ending = [one["metadata"]["name"] for one in sets.old if asked(one)]
        for name in ending:
            await sets.scale(name, 0)
        if ending or any((one.get("status") or {}).get("replicas") or self._has_pods(one) for one in sets.old):
            return
        await sets.revised(may_create=True)
        if sets.new is not None:
            await sets.scale(sets.new["metadata"]["name"], sets.wanted)
            await self._tidy()

    async def _tidy(self) -> None:
        if is_complete(self._sets.deployment, self._sets.deployment.get("status") or {}):
            await self._sets.forget_oldest()

    # -- scaling during a rollout --------------------------------------------------------------------------------------

    def _was_scaled(self) -> bool:
        wanted = str(self._sets.wanted)
        return any(
            notes(one).get(revision_annotations.DESIRED, wanted) != wanted for one in self._sets.all if asked(one)
        )

    async def _resize(self) -> None:
        """Handle a scaled or paused Deployment: sizes change, templates do not."""
        sets = self._sets
        only = self._only()
        if only is not None:
            await sets.scale(only["metadata"]["name"], sets.wanted)
            return
        if self._is_saturated(sets.new):
            for one in sets.old:
                if asked(one):
                    await sets.scale(one["metadata"]["name"], 0)
            return
        spec = sets.deployment["spec"]
        if spec["strategy"]["type"] != "RollingUpdate":
            return
        active = sets.sizes(one for one in sets.all if asked(one))
        status = sets.deployment.get("status") or {}
        sizes = shared_out(sets.wanted, slack(spec).surge, active, status.get("replicas", 0))
        for name, size in sizes.items():
            await sets.scale(name, size)

    def _only(self) -> Obj | None:
        """The only ReplicaSet with pods, or the latest if none has pods; None if several have pods."""
        active = [one for one in self._sets.all if asked(one)]
        if len(active) > 1:
            return None
        if active:
            return active[0]
        return self._sets.new or max(self._sets.old, key=by_age, default=None)

    def _is_saturated(self, new: Obj | None) -> bool:
        wanted = self._sets.wanted
        if new is None or revision_annotations.DESIRED not in notes(new):
            return False
        available = (new.get("status") or {}).get("availableReplicas", 0)
        return asked(new) == wanted == available and notes(new)[revision_annotations.DESIRED] == str(wanted)

    # -- status ----------------------------------------------------------------------------------------------------

    async def _note_pause(self) -> None:
        """The deadline of a paused rollout starts again when it is resumed."""
        sets, before = self._sets, self._sets.deployment.get("status") or {}
        known = before.get("conditions") or []
        current = conditions.find(known, conditions.PROGRESSING)
        reason = current.get("reason") if current is not None else ""
        if not has_deadline(sets.deployment) or reason == conditions.TIMED_OUT:
            return
        is_paused = bool(sets.deployment["spec"].get("paused"))
        if is_paused == (reason == conditions.PAUSED):
            return
        said = (
            (conditions.PAUSED, "Deployment is paused") if is_paused else (conditions.RESUMED, "Deployment is resumed")
        )
        new = conditions.condition(conditions.PROGRESSING, "Unknown", *said, self._clock.text())
        await sets.write_status({**before, "conditions": conditions.with_condition(known, new)})

    async def _tell_counts(self) -> None:
        sets = self._sets
        await sets.write_status(counted(sets.deployment, sets.all, sets.new, self._clock.text()))

    async def _tell_progress(self) -> float | None:
        sets, clock = self._sets, self._clock
        await sets.write_status(rolled(sets.deployment, sets.all, sets.new, clock.text(), clock.seconds()))
        status = sets.deployment.get("status") or {}
        if not has_deadline(sets.deployment) or is_complete(sets.deployment, status):
            return None
        current = conditions.find(status.get("conditions") or [], conditions.PROGRESSING)
        deadline_s = sets.deployment["spec"]["progressDeadlineSeconds"]
        left_s = conditions.seconds_left(current, deadline_s, clock.seconds())
        # One second more, because times in objects have no fractions.
        return None if left_s is None else max(left_s, 0.0) + 1.0
