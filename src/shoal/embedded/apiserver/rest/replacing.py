"""Replace a whole object, and create it where there is none, if its kind allows that and the writer may."""

from __future__ import annotations

import msgspec

from shoal.embedded.apiserver import field_errors, status
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.resource import Obj
from shoal.embedded.apiserver.rest.changing import change
from shoal.embedded.apiserver.rest.context import ServerContext, computed
from shoal.embedded.apiserver.rest.creating import create
from shoal.embedded.apiserver.rest.rights import check_may_create
from shoal.embedded.apiserver.state.record import Record


async def replace(context: ServerContext, call: Call, obj: Obj) -> tuple[Obj | Record, bool]:
    """What is there now, and whether it was created for that. Who was overtaken by a creation or deletion goes on."""
    ref = call.resource.ref(call.namespace, call.name)
    has_version = bool(obj["metadata"].get("resourceVersion"))
    may_create = not call.subresource and call.resource.strategy.creates_on_update

    async def make(_: Obj) -> Obj:
        if not has_version and _needs_version(call):
            raise _no_version(call)
        return await computed(context, call, _copied, obj)

    while True:
        present = context.state.get(ref)
        try:
            return await change(context, call, make), False
        except status.ApiError as error:
            # Something else than the object may be what was not found.
            if error.code != 404 or not may_create or (present is not None and context.state.get(ref) is present):
                raise
        try:
            return await _created(context, call, await computed(context, call, _copied, obj)), True
        except status.ApiError as error:
            if error.reason != "AlreadyExists":
                raise


def _copied(obj: Obj) -> Obj:
    # By way of JSON, in a seventh of the time that deepcopy takes.
    copy: Obj = msgspec.json.decode(msgspec.json.encode(obj))
    return copy


async def _created(context: ServerContext, call: Call, obj: Obj) -> Obj | Record:
    check_may_create(context, call)
    obj["metadata"].pop("resourceVersion", None)
    return await create(context, msgspec.structs.replace(call, verb="create"), obj)


def _needs_version(call: Call) -> bool:
    return call.subresource in ("", "status") and (call.resource.is_custom or call.resource.strategy.needs_version)


def _no_version(call: Call) -> status.ApiError:
    error = field_errors.bad_value("metadata.resourceVersion", 0, "must be specified for an update")
    # By its plural: Kubernetes says this where it no longer knows the kind.
    return status.invalid(call.resource.plural, call.resource.group, call.name, [error])
