"""Custom resources come and go with their definitions: the catalog follows what is stored.

A new definition is given its conditions in a write of its own, as Kubernetes' controllers do, and is served once it is
established. When it is deleted its objects go first; it waits for that with a finalizer. Both are tried until they are
done. Definitions are large and there may be many, so that what they have to know of each other is kept apart.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from functools import partial

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.background_retries import BackgroundRetries
from shoal.embedded.apiserver.calls import SERVER, Call
from shoal.embedded.apiserver.crds.establish import CLEANUP, add_stored_version, condition, establish, is_established
from shoal.embedded.apiserver.crds.serving import served, storage_version
from shoal.embedded.apiserver.foreign.provided import brought, provider_of
from shoal.embedded.apiserver.resource import Home, Obj, Ref, Resource
from shoal.embedded.apiserver.rest.changing import change
from shoal.embedded.apiserver.rest.codec import ordered
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.deleting import DeleteOptions, delete_all
from shoal.embedded.apiserver.rest.selection import EVERYTHING
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.record import Record, Write

_log = logging.getLogger("shoal.cluster")
CRDS = Home("apiextensions.k8s.io", "customresourcedefinitions")


class _Names(msgspec.Struct, frozen=True):
    """What other definitions ask of one."""

    brief: Obj
    """As much of it as names are compared by."""
    is_content: bool
    """It has all the names it asked for."""


class _Version(msgspec.Struct, rename="camel"):
    """As much of an object as says in which version it is stored."""

    api_version: str = ""


_version_of = msgspec.json.Decoder(_Version).decode


class CustomResources:
    """Keeps the catalog in step with the stored definitions until `close`."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._errands = BackgroundRetries()
        self._names: dict[str, _Names] = {}
        self._shapes: dict[str, tuple[Obj, Obj, str]] = {}
        """What the catalog has of each: its spec and the names it was given."""
        definitions = [(record, record.obj()) for record in context.state.list(CRDS, None).records]
        for record, crd in definitions:
            self._names[record.ref.name] = _names(crd)
        for record, crd in definitions:
            self._follow(record, crd)
        context.state.on_commit(self._committed)

    async def close(self) -> None:
        await self._errands.close()

    def _committed(self, events: Sequence[Event]) -> None:
        for event in events:
            record = event.record
            if record.ref.home != CRDS:
                continue
            crd = record.obj()
            before = self._names.pop(record.ref.name, None)
            if event.kind == "DELETED":
                self._drop(record.ref.name, crd)
            else:
                self._names[record.ref.name] = _names(crd)
                known = self._shapes.get(record.ref.name)
                self._follow(record, crd)
                if self._shapes.get(record.ref.name) is not known:
                    self._errands.start(f"the settling of definition {record.ref.name}", partial(self._settle, record))
            if before != self._names.get(record.ref.name):
                self._look_at_others(record.ref.name)

    def _follow(self, record: Record, crd: Obj) -> None:
        name = record.ref.name
        if self._with_status(crd) != crd:
            self._errands.start(f"the establishing of definition {name}", partial(self._establish, name))
        if is_established(crd):
            self._serve(record, crd)
        if "deletionTimestamp" in crd["metadata"] and CLEANUP in crd["metadata"].get("finalizers", ()):
            self._errands.start(f"the cleaning up behind definition {name}", partial(self._clean, record.ref))

    def _serve(self, record: Record, crd: Obj) -> None:
        shape = crd["spec"], crd["status"].get("acceptedNames") or {}, provider_of(crd)
        if self._shapes.get(record.ref.name) == shape:
            return
        if self._given_up(crd):
            name = f"the migration of what definition {record.ref.name} took over"
            self._errands.start(name, partial(self._migrate, record.ref))
            return
        resources = served(crd)
        stored = _stored(crd, resources)
        if stored is not None:
            self._context.catalog.put_custom(resources, stored, record.revision)
            self._shapes[record.ref.name] = shape

    def _given_up(self, crd: Obj) -> list[Record]:
        """What is stored in versions that the definition does not have any more."""
        group = crd["spec"]["group"]
        there = {f"{group}/{one['name']}" for one in crd["spec"]["versions"]}
        records = self._context.state.list(_home(crd), None).records
        return [one for one in records if _version_of(one.data).api_version not in there]

    async def _migrate(self, ref: Ref) -> None:
        """Store anew what is stored in versions that were given up, then serve the definition as it is by now.

        Until then the former definition is served, which still reads these objects. A write that was on its way then
        is the reason for looking twice.
        """
        state = self._context.state
        for _ in range(2):
            await state.settled()
            record = state.get(ref)
            if record is None:
                return
            crd = record.obj()
            late = self._given_up(crd)
            for one in late:
                await self._store_anew(one, crd)
            if late:
                said = "%s: another definition took over; objects stored as %s now: %d"
                _log.warning(said, ref.name, storage_version(crd), len(late))
            self._serve(record, crd)

    async def _store_anew(self, record: Record, crd: Obj) -> None:
        state = self._context.state
        async with state.lock(record.ref):
            if state.get(record.ref) is record:
                obj = ordered(brought(record.obj(), crd, storage_version(crd)))
                await state.commit([Write(record.ref, obj, record, record.uid, record.labels, record.fields)])

    async def _settle(self, record: Record) -> None:
        """What was on its way when the definition changed is stored after it, and was still made by the old one."""
        state, catalog, home = self._context.state, self._context.catalog, _home(record.obj())
        await state.settled()
        stored = catalog.stored(home)
        is_late = any(one.revision > record.revision for one in state.list(home, None).records)
        if stored is not None and is_late:
            versions = [catalog.find(home.group, version, home.plural) for version in catalog.versions(home.group)]
            catalog.put_custom([one for one in versions if one is not None], stored, state.revision)

    def _look_at_others(self, changed: str) -> None:
        """A name that was given up may be what another definition waits for."""
        for name, one in self._names.items():
            if name != changed and not one.is_content:
                self._errands.start(f"the establishing of definition {name}", partial(self._establish, name))

    def _with_status(self, crd: Obj) -> Obj:
        others = [one.brief for name, one in self._names.items() if name != crd["metadata"]["name"]]
        changed = establish(crd, others, self._context.clock.text())
        changed = {**changed, "status": {**changed["status"]}}
        add_stored_version(changed)
        return changed

    async def _establish(self, name: str) -> None:
        resource = self._context.catalog.builtin(CRDS)

        async def make(present: Obj) -> Obj:
            return self._with_status(present)

        call = Call("update", resource, SERVER, name=name, subresource="status", field_manager="kube-apiserver")
        await _unless_gone(change(self._context, call, make))

    def _drop(self, name: str, crd: Obj) -> None:
        self._shapes.pop(name, None)
        home = _home(crd)
        self._context.catalog.drop_custom(home)
        self._context.state.end_watches(home)

    async def _clean(self, ref: Ref) -> None:
        """Delete all objects, wait for those that finalizers hold, then let the definition go.

        Webhooks and policies are not asked, as in Kubernetes: they were about the definition.
        """
        state = self._context.state
        record = state.get(ref)
        if record is None:
            return
        home = _home(record.obj())
        # Creations that were decided before the deletion was seen; those that come later are refused.
        await state.settled()
        while state.count(home):
            stored = self._context.catalog.stored(home)
            if stored is None:
                break
            watch = state.watch(home, None, state.revision)
            call = Call("deletecollection", stored, SERVER)
            await delete_all(self._context, call, EVERYTHING, DeleteOptions(), asks=False)
            if state.count(home):
                await watch.next_batch()
            if watch.closed:
                return
            watch.close()
        await self._let_go(ref.name)

    async def _let_go(self, name: str) -> None:
        resource = self._context.catalog.builtin(CRDS)

        async def make(present: Obj) -> Obj:
            metadata = present["metadata"]
            metadata["finalizers"] = [one for one in metadata.get("finalizers", ()) if one != CLEANUP]
            return present

        call = Call("update", resource, SERVER, name=name, subresource="finalize")
        await _unless_gone(change(self._context, call, make))


async def _unless_gone(changing: Awaitable[object]) -> None:
    """If the definition was deleted meanwhile, nothing is left to do."""
    try:
        await changing
    except status.ApiError as error:
        if error.code != 404:
            raise


def _names(crd: Obj) -> _Names:
    brief = {
        "metadata": {"name": crd["metadata"]["name"]},
        "spec": {"group": crd["spec"]["group"]},
        "status": {"acceptedNames": (crd.get("status") or {}).get("acceptedNames") or {}},
    }
    accepted = condition(crd, "NamesAccepted")
    return _Names(brief, accepted is not None and accepted["status"] == "True")


def _home(crd: Obj) -> Home:
    return Home(crd["spec"]["group"], crd["spec"]["names"]["plural"])


def _stored(crd: Obj, resources: Sequence[Resource]) -> Resource | None:
    """The resource of the storage version, which may be one that is not served."""
    wanted = storage_version(crd)
    found = next((one for one in resources if one.version == wanted), None)
    if found is not None or not resources:
        return found
    whole = {**crd, "spec": {**crd["spec"], "versions": [{**one, "served": True} for one in crd["spec"]["versions"]]}}
    return next((one for one in served(whole) if one.version == wanted), None)
