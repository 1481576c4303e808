"""Represents one deployment and its replica sets during a reconciliation, including writes that were just made.

Every write contains the version that was read, so that a controller with outdated state stops with a conflict and reads
again, instead of scaling by outdated numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from shoal.client.context import Context
from shoal.client.item import Item, Obj
from shoal.client.kind import DEPLOYMENTS, REPLICA_SETS
from shoal.client.owned_pods.pod_control import is_namespace_ending
from shoal.client.port import Deletion
from shoal.client.refusals import AlreadyExistsError, NotFoundError
from shoal.embedded.controllers.deployments import conditions, revision_annotations
from shoal.embedded.controllers.deployments.sizes import Size, new_size, slack
from shoal.embedded.controllers.deployments.status import has_deadline
from shoal.embedded.controllers.deployments.templates import by_age, made_set, newest, same_template
from shoal.units.errors import ConflictError, ShoalError


class Sets:
    def __init__(self, context: Context, deployment: Obj, sets: Iterable[Obj], serving: Callable[[Obj], int]) -> None:
        """`serving`: returns the number of available pods of a ReplicaSet."""
        self.deployment = deployment
        self._serving = serving
        self._context = context
        self._sets = {one["metadata"]["name"]: one for one in sets}
        found = newest(deployment, self._sets.values())
        self._new = found["metadata"]["name"] if found is not None else ""

    @property
    def wanted(self) -> int:
        replicas: int = self.deployment["spec"].get("replicas", 1)
        return replicas

    @property
    def all(self) -> list[Obj]:
        return sorted(self._sets.values(), key=by_age)

    @property
    def new(self) -> Obj | None:
        return self._sets.get(self._new)

    @property
    def old(self) -> list[Obj]:
        return [one for one in self.all if one["metadata"]["name"] != self._new]

    # -- the newest ReplicaSet
    # ---------------------------------------------------------------------------------------------

    async def revised(self, *, may_create: bool) -> None:
        """Give the newest ReplicaSet the highest revision, and write it to the Deployment."""
        revision = (
            max((revision_annotations.number(notes(one), revision_annotations.REVISION) for one in self.old), default=0)
            + 1
        )
        new = self.new
        if new is not None:
            await self._keep_up(new, revision)
        elif may_create:
            await self._create(revision)

    async def _keep_up(self, new: Obj, revision: int) -> None:
        made = revision_annotations.of_new_set(notes(self.deployment), notes(new), revision)
        min_ready_s = self.deployment["spec"].get("minReadySeconds", 0)
        if made != notes(new) or new["spec"].get("minReadySeconds", 0) != min_ready_s:
            new["metadata"]["annotations"] = made
            new["spec"]["minReadySeconds"] = min_ready_s
            new = await self._write(new)
        await self._say_revision(notes(new)[revision_annotations.REVISION])
        current = conditions.find((self.deployment.get("status") or {}).get("conditions") or [], conditions.PROGRESSING)
        if has_deadline(self.deployment) and current is None:
            words = f'Found new replica set "{new["metadata"]["name"]}"'
            await self._progress("True", conditions.FOUND, words)

    async def _create(self, revision: int) -> None:
        """After a crash the created ReplicaSet is found by its name, which the template determines."""
        spec, surge = self.deployment["spec"], slack(self.deployment["spec"]).surge
        everything = sum(asked(one) for one in self.all)
        replicas = new_size(self.wanted, spec["strategy"]["type"], surge, 0, everything)
        marks = revision_annotations.of_new_set(notes(self.deployment), {}, revision)
        made = made_set(self.deployment, replicas, marks | revision_annotations.sizes(self.wanted, self.wanted + surge))
        name = made["metadata"]["name"]
        try:
            item = await self._context.api.create(REPLICA_SETS, made)
        except AlreadyExistsError:
            item = await self._taken(made)
        except ShoalError as error:
            if is_namespace_ending(error):
                return
            await self._not_created(name, error)
            raise
        else:
            if replicas:
                self._record(f"Scaled up replica set {name} from 0 to {replicas}")
        self._learn(item)
        self._new = name
        await self._say_revision(str(revision))
        if has_deadline(self.deployment):
            await self._progress("True", conditions.CREATED, f'Created new replica set "{name}"')

    async def _taken(self, made: Obj) -> Item:
        """Handle a name in use: by the wanted ReplicaSet, or by another object; then the next reconciliation uses
        another name.
        """
        meta = made["metadata"]
        item = await self._context.api.get(REPLICA_SETS, meta["namespace"], meta["name"])
        found = item.obj()
        owners = found["metadata"].get("ownerReferences") or ()
        is_ours = any(one.get("controller") and one["uid"] == self.deployment["metadata"]["uid"] for one in owners)
        if is_ours and same_template(found["spec"]["template"], made["spec"]["template"]):
            return item
        status = dict(self.deployment.get("status") or {})
        status["collisionCount"] = status.get("collisionCount", 0) + 1
        await self.write_status(status)
        raise ConflictError(f"the name {meta['name']} is taken")

    async def _not_created(self, name: str, error: ShoalError) -> None:
        words = f'Failed to create new replica set "{name}": {error.what}'
        if has_deadline(self.deployment):
            await self._progress("False", conditions.NOT_CREATED, words)
        self._record(words, conditions.NOT_CREATED, is_bad=True)

    # -- sizes ------------------------------------------------------------------------------------------------------

    def sizes(self, sets: Iterable[Obj]) -> list[Size]:
        return [
            Size(
                one["metadata"]["name"],
                asked(one),
                self._available(one),
                one["metadata"].get("creationTimestamp", ""),
                revision_annotations.number(notes(one), revision_annotations.GREATEST),
            )
            for one in sets
        ]

    def _available(self, one: Obj) -> int:
        """The number in its status, limited to its wanted and its available pods: the status may be old, and surplus
        pods will be deleted. Kubernetes uses the status without a limit.
        """
        said: int = (one.get("status") or {}).get("availableReplicas", 0)
        return min(said, asked(one), self._serving(one))

    async def scale(self, name: str, replicas: int) -> bool:
        """Scale a ReplicaSet and update its annotations about the Deployment's size; returns whether the size
        changed.
        """
        one = self._sets[name]
        before = asked(one)
        greatest = self.wanted + slack(self.deployment["spec"]).surge
        marks = {**notes(one), **revision_annotations.sizes(self.wanted, greatest)}
        if before == replicas and marks == notes(one):
            return False
        one["spec"]["replicas"] = replicas
        one["metadata"]["annotations"] = marks
        await self._write(one)
        if before == replicas:
            return False
        way = "up" if replicas > before else "down"
        self._record(f"Scaled {way} replica set {name} from {before} to {replicas}")
        return True

    async def forget_oldest(self) -> None:
        """Delete empty old ReplicaSets beyond the history limit."""
        limit = self.deployment["spec"].get("revisionHistoryLimit")
        if limit is None:
            return
        old = [one for one in self.old if "deletionTimestamp" not in one["metadata"]]
        old.sort(key=lambda one: revision_annotations.number(notes(one), revision_annotations.REVISION))
        for one in old[: max(len(old) - limit, 0)]:
            meta, status = one["metadata"], one.get("status") or {}
            unseen = meta.get("generation", 0) > status.get("observedGeneration", 0)
            if status.get("replicas") or asked(one) or unseen:
                continue
            with suppress(NotFoundError):
                how = Deletion(uid=meta["uid"], policy="Background")
                await self._context.api.delete(REPLICA_SETS, meta["namespace"], meta["name"], how)
            del self._sets[meta["name"]]

    # -- writes ----------------------------------------------------------------------------------------------------

    async def write_status(self, status: Obj) -> None:
        if status == (self.deployment.get("status") or {}):
            return
        await self._take(await self._context.api.update(DEPLOYMENTS, {**self.deployment, "status": status}, "status"))

    async def _progress(self, status: str, reason: str, message: str) -> None:
        before = self.deployment.get("status") or {}
        new = conditions.condition(conditions.PROGRESSING, status, reason, message, self._context.clock.text())
        changed = conditions.with_condition(before.get("conditions") or [], new)
        await self.write_status({**before, "conditions": changed})

    async def _say_revision(self, revision: str) -> None:
        if notes(self.deployment).get(revision_annotations.REVISION) == revision:
            return
        changed = {**notes(self.deployment), revision_annotations.REVISION: revision}
        metadata = {**self.deployment["metadata"], "annotations": changed}
        await self._take(await self._context.api.update(DEPLOYMENTS, {**self.deployment, "metadata": metadata}))

    async def _take(self, item: Item) -> None:
        self.deployment = whole(item, DEPLOYMENTS.name)

    async def _write(self, one: Obj) -> Obj:
        return self._learn(await self._context.api.update(REPLICA_SETS, one))

    def _learn(self, item: Item) -> Obj:
        self._sets[item.name] = whole(item, REPLICA_SETS.name)
        return self._sets[item.name]

    def _record(self, message: str, reason: str = "ScalingReplicaSet", *, is_bad: bool = False) -> None:
        self._context.events.record(self.deployment, reason, message, type_="Warning" if is_bad else "Normal")


def whole(item: Item, kind: str) -> Obj:
    """The object with kind and apiVersion, which lists omit and Events need."""
    return {**item.obj(), "kind": kind, "apiVersion": DEPLOYMENTS.api_version}


def notes(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def asked(one: Obj) -> int:
    replicas: int = one["spec"].get("replicas", 1)
    return replicas
