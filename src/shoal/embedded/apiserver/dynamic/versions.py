"""Objects in the version that a webhook or a policy asked for, and what they sent back, in the shape of the kind.

What others return may have anything in it: unknown fields go, as they do when a client sends them, and defaults are
filled in again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.builtin_conversion import convert_builtin
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.crds.pruning import conform_custom
from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.schema.decode import conform

Obj = dict[str, Any]
Convert = Callable[[list[Obj], str, Resource], Awaitable[list[Obj]]]


class Versions:
    """Converts between the versions of what is written."""

    def __init__(self, convert: Convert) -> None:
        self._convert = convert

    async def to(self, resource: Resource, obj: Obj | None, call: Call) -> Obj | None:
        """The object as `resource` shows it. Objects behind a subresource of another kind are what they are."""
        if obj is None or resource.api_version == obj.get("apiVersion"):
            return obj
        subresource = call.resource.subresource(call.subresource) if call.subresource else None
        if subresource is not None and subresource.kind:
            return obj
        if resource.is_custom:
            return (await self._convert([obj], resource.api_version, resource))[0]
        return convert_builtin(obj, resource.api_version)


def restored(obj: Any, resource: Resource, call: Call) -> Obj:
    """What came back, conformed and defaulted; InternalError where it is not an object of the kind."""
    subresource = call.resource.subresource(call.subresource) if call.subresource else None
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata") or {}, dict):
        raise status.internal("the patched document is not an object")
    if subresource is not None and subresource.kind:
        return obj
    try:
        if resource.is_custom:
            conform_custom(obj, resource.schema)
        else:
            conform(obj, resource.schema, kind=resource.kind, api_version=resource.api_version)
    except status.ApiError as error:
        raise status.internal(error.message) from None
    obj.setdefault("metadata", {})
    resource.strategy.default(obj)
    return obj
