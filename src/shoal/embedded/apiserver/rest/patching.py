"""Patch: the four ways to say a change, each worked out on the object in the version of the request."""

from __future__ import annotations

from typing import Any, Literal

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.patches.json_patch import json_patch
from shoal.embedded.apiserver.patches.merge_patch import merge_patch
from shoal.embedded.apiserver.patches.strategic import strategic_merge
from shoal.embedded.apiserver.resource import Obj
from shoal.embedded.apiserver.rest.changing import change
from shoal.embedded.apiserver.rest.context import ServerContext, computed
from shoal.embedded.apiserver.rest.patch_text import as_kind
from shoal.embedded.apiserver.rest.server_side import apply_object
from shoal.embedded.apiserver.state.record import Record

PatchType = Literal["json", "merge", "strategic", "apply"]

PATCH_TYPES: dict[str, PatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}


async def patch(
    context: ServerContext, call: Call, how: PatchType, body: Any, duplicates: list[str], options: Obj | None = None
) -> tuple[Obj | Record, bool]:
    """The patched object, and whether an apply created it."""
    if how == "apply":
        return await apply_object(context, call, body, duplicates, options)

    async def make(present: Obj) -> Obj:
        return await computed(context, call, made_of, present)

    def made_of(present: Obj) -> Obj:
        return as_kind(call, patched(call, how, present, body), how, body, duplicates)

    return await change(context, call, make), False


def patched(call: Call, how: PatchType, present: Obj, body: Any) -> Obj:
    resource = call.resource
    if how == "json":
        changed: Obj = json_patch(present, body)
        return changed
    if how == "merge":
        return merge_patch(present, body)
    if resource.is_custom:
        raise status.unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        )
    return strategic_merge(present, body, resource.schema)
