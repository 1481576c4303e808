"""Custom objects from version to version, with conversion webhooks really called: the `Convert` of the operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.embedded.apiserver.crds.conversion import Conversion, convert
from shoal.embedded.apiserver.dynamic.posting import Posting
from shoal.embedded.apiserver.dynamic.versions import Convert
from shoal.embedded.apiserver.resource import Resource

Obj = dict[str, Any]
_TIMEOUT_S = 30.0
"""Conversion has no time-out of its own; it ends with the request, and sooner here."""


def converting(posting: Posting, new_uid: Callable[[], str]) -> Convert:
    async def post(client: Obj, review: Obj) -> Obj:
        return await posting.post(client, review, _TIMEOUT_S)

    async def converted(objs: list[Obj], to: str, resource: Resource) -> list[Obj]:
        return await convert(objs, Conversion(resource, to.rpartition("/")[2], new_uid()), post)

    return converted
