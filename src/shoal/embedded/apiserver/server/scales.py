"""Requests for the subresource `scale`, of every kind that has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.resource import Obj
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.patch_text import as_kind
from shoal.embedded.apiserver.rest.patching import PatchType, patched
from shoal.embedded.apiserver.rest.scaling import KIND, VERSION, apply_to_scale, change_scale, read_scale
from shoal.embedded.apiserver.rest.server_side import configuration
from shoal.embedded.apiserver.server.subresource_bodies import SubresourceBodies


class Scales:
    def __init__(self, context: ServerContext, spoken: SubresourceBodies) -> None:
        self._context = context
        self._spoken = spoken

    async def read(self, call: Call) -> Obj:
        return await read_scale(self._context, call)

    async def replace(self, call: Call, body: object, duplicates: Sequence[str]) -> Obj:
        scale = self._spoken.read(call, body, duplicates)
        return await change_scale(self._context, call, self._spoken.schema(call), lambda _: scale)

    async def patch(self, call: Call, how: PatchType, body: Any, problems: list[str]) -> Obj:
        """Worked out on the scale as it is when the patch has its turn, so that a test in it holds for the write."""
        schema = self._spoken.schema(call)
        if how == "apply":
            config = configuration(call, body, problems, (VERSION, KIND))
            return await apply_to_scale(self._context, call, schema, config)
        # A scale has no lists to merge, and that of a custom resource takes a strategic patch too.
        way: PatchType = "merge" if how == "strategic" else how

        def make(present: Obj) -> Obj:
            return as_kind(self._spoken.heard(call), patched(call, way, present, body), how, body, problems)

        return await change_scale(self._context, call, schema, make)
