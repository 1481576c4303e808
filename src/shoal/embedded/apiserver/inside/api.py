"""The port of `shoal.client` on the operations themselves: what HTTP would ask for, without HTTP.

The same checks apply as over HTTP: the user's rights, validation, admission, conflicts, quotas. What is left out
is bytes: objects come as values and leave as the bytes that the state keeps anyway.

Rejected: speaking TLS to oneself. A thousand idle kubelets and their caches would cost four times as much.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import structs

from shoal.client.item import Item, Listed, Obj, WatchEvent, item_of
from shoal.client.kind import NAMESPACES, Kind
from shoal.client.port import EVERYTHING, GENTLY, Batch, Batches, Deletion, Patch, Select, ServedKind
from shoal.client.refusals import refusal_of
from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import Actor, Call, Verb
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.rest import codec, reading
from shoal.embedded.apiserver.rest.context import computed
from shoal.embedded.apiserver.rest.creating import create
from shoal.embedded.apiserver.rest.deleting import delete, delete_options
from shoal.embedded.apiserver.rest.incoming import accepted, at_home
from shoal.embedded.apiserver.rest.options import ReadOptions
from shoal.embedded.apiserver.rest.patching import patch
from shoal.embedded.apiserver.rest.replacing import replace
from shoal.embedded.apiserver.rest.selection import Selection, fields_asked_for, name_asked_for, selection
from shoal.embedded.apiserver.rest.watching import seen_as
from shoal.embedded.apiserver.security.verdict import refusal
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.record import Record

if TYPE_CHECKING:
    from shoal.embedded.apiserver.server.control_plane import ControlPlane

_T = TypeVar("_T")
_ELSEWHERE = ("scale",)
"""Doors with a form of their own, which only HTTP speaks."""


class InsideApi:
    """One user's way in. `agent` is the manager of the fields it writes."""

    def __init__(self, plane: ControlPlane, actor: Actor, agent: str) -> None:
        self._context = plane.context
        self._virtual = plane.inside.virtual
        self._faults = plane.faults
        self._actor = actor
        self._agent = agent
        self._known_served: tuple[int, tuple[ServedKind, ...]] = (0, ())
        """And the catalog's stamp as it was then: many ask every few seconds for what hardly ever changes."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        with _translated():
            call = await self._call("get", kind, namespace, name)
            return await self._item(reading.get(self._context, call), call)

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        with _translated():
            call = await self._call("list", kind, namespace, confined_to=select)
            options = ReadOptions(label_selector=select.labels, field_selector=select.fields)
            found = reading.list_(self._context, call, options)
            lines = await codec.lines(self._context, call, found.records)
            items = [_item_of(one, data) for one, data in zip(found.records, lines, strict=True)]
            return Listed(items, found.revision)

    async def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        with _translated():
            call = await self._call("watch", kind, namespace, confined_to=select)
            chosen = selection(call.resource, select.labels, select.fields)
            state = self._context.state
            watch = state.watch(call.resource.home, namespace or None, min(since, state.revision))
            try:
                while not watch.closed:
                    batch = await self._changes(await watch.next_batch(), call, chosen)
                    if batch:
                        yield batch
            finally:
                watch.close()

    async def create(self, kind: Kind, obj: Obj) -> Item:
        with _translated():
            call = await self._call("create", kind, obj.get("metadata", {}).get("namespace", ""))
            # Templates of users may be as large as bodies.
            call.size = len(msgspec.json.encode(obj))
            made = create(self._context, call, await computed(self._context, call, accepted, call, obj))
            return await self._item(await _finished(made), call)

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        with _translated():
            meta = obj["metadata"]
            call = await self._call("update", kind, meta.get("namespace", ""), meta["name"], subresource)
            call.size = len(msgspec.json.encode(obj))
            sent = await computed(self._context, call, accepted, call, obj)
            at_home(call, sent, call.name)
            found, _ = await _finished(replace(self._context, call, sent))
            return await self._item(found, call)

    async def patch(self, kind: Kind, namespace: str, name: str, patch_: Patch, subresource: str = "") -> Item:
        with _translated():
            call = await self._call("patch", kind, namespace, name, subresource)
            call.force = patch_.force
            if patch_.how == "apply":
                patch_ = msgspec.structs.replace(patch_, body=_typed(kind, patch_.body))
            found, _ = await _finished(patch(self._context, call, patch_.how, patch_.body, []))
            return await self._item(found, call)

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        with _translated():
            call = await self._call("delete", kind, namespace, name)
            found, is_gone = await _finished(delete(self._context, call, delete_options(how.to_api())))
            return None if is_gone else await self._item(found, call)

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        with _translated():
            call = await self._call("create", kind, namespace, name, subresource)
            act = self._virtual.get((*call.resource.home, subresource))
            if act is None:
                raise status.method_not_supported(kind.plural, kind.group)
            if not isinstance(obj.get("metadata"), dict):
                obj["metadata"] = {}
            obj["metadata"] |= {"name": name, "namespace": namespace}
            return await _finished(act(call, obj))

    async def served(self) -> tuple[ServedKind, ...]:
        stamp = self._context.catalog.stamp
        if self._known_served[0] != stamp:
            self._known_served = (stamp, self._served())
        return self._known_served[1]

    def _served(self) -> tuple[ServedKind, ...]:
        catalog = self._context.catalog
        found: dict[tuple[str, str], ServedKind] = {}
        versions: dict[tuple[str, str], list[str]] = {}
        rank = {group: list(catalog.versions(group)) for group in catalog.groups()}
        for one in sorted(catalog.all(), key=lambda one: rank[one.group].index(one.version)):
            kind = Kind(one.group, one.version, one.plural, one.kind, one.namespaced)
            found.setdefault((one.group, one.plural), ServedKind(kind, frozenset(one.verbs), ()))
            versions.setdefault((one.group, one.plural), []).append(one.version)
        return tuple(structs.replace(one, versions=tuple(versions[name])) for name, one in found.items())

    async def close(self) -> None:
        """Nothing is open between two calls."""

    async def _call(
        self,
        verb: Verb,
        kind: Kind,
        namespace: str,
        name: str = "",
        subresource: str = "",
        *,
        confined_to: Select = EVERYTHING,
    ) -> Call:
        """The request, once it is known that there is such a resource and that this user may."""
        await self._faults.before(verb)
        resource = self._context.catalog.find(kind.group, kind.version, kind.plural)
        if resource is None:
            raise status.no_such_path()
        if subresource in _ELSEWHERE:
            raise status.method_not_supported(kind.plural, kind.group)
        named = name or name_asked_for(confined_to.fields)
        fields = fields_asked_for(confined_to.fields)
        # As in the path of a Namespace: a Role inside it may allow requests about it.
        space = name if kind == NAMESPACES else namespace
        asked = RequestInfo(verb, kind.group, kind.version, kind.plural, subresource, space, named, fields=fields)
        verdict = self._context.authorizer.allows(self._actor, asked)
        if not verdict.allowed:
            raise refusal(self._actor, asked, verdict)
        return Call(verb, resource, self._actor, namespace, name, subresource, self._agent)

    async def _changes(self, events: Sequence[Event], call: Call, chosen: Selection) -> Batch:
        everything = chosen.is_everything()
        batch = Batch()
        for event in events:
            kind = event.kind if everything else seen_as(event, chosen)
            if kind:
                left = kind == "DELETED" and event.kind != "DELETED"
                item = await self._item(event.departed() if left else event.record, call)
                batch.append(WatchEvent(kind, item, item.version))  # type: ignore[arg-type]
        return batch

    async def _item(self, found: Obj | Record, call: Call) -> Item:
        if not isinstance(found, Record):
            # The write took the last finalizer of something that was waiting for that.
            return item_of(msgspec.json.encode(found))
        data = await codec.line(self._context, call, found)
        return _item_of(found, data)


def _item_of(record: Record, data: bytes) -> Item:
    return Item(record.ref.namespace, record.ref.name, record.uid, record.revision, data)


def _typed(kind: Kind, obj: Obj) -> Obj:
    return {"apiVersion": kind.api_version, "kind": kind.name, **obj}


async def _finished(work: Awaitable[_T]) -> _T:
    """A write that was begun is finished, even if its caller is cancelled."""
    return await asyncio.shield(asyncio.ensure_future(work))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except status.ApiError as error:
        raise refusal_of(error.status()) from None
