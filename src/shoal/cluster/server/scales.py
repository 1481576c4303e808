"""The door `scale`, of whatever has one: read, replaced and patched as a Scale, kept in the object behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.cluster.calls import Call
from shoal.cluster.resource import Obj
from shoal.cluster.rest.patching import PatchType, patched
from shoal.cluster.rest.server_side import apply_scale
from shoal.cluster.rest.stage import Stage
from shoal.cluster.rest.subresources import change_scale, read_scale, write_scale
from shoal.cluster.server.spoken import Spoken

SCALE = "scale"


class Scales:
    def __init__(self, stage: Stage, spoken: Spoken) -> None:
        self._stage = stage
        self._spoken = spoken

    async def read(self, call: Call) -> Obj:
        return await read_scale(self._stage, call)

    async def replace(self, call: Call, body: object, duplicates: Sequence[str]) -> Obj:
        return await write_scale(self._stage, call, self._spoken.read(call, body, duplicates))

    async def patch(self, call: Call, how: PatchType, body: Any, problems: list[str]) -> Obj:
        """Worked out on the scale as it is when the patch has its turn, so that a test in it holds for the write."""
        if how == "apply":
            return await apply_scale(self._stage, call, body, problems)
        # A scale has no lists to merge, and that of a custom resource takes a strategic patch too.
        way: PatchType = "merge" if how == "strategic" else how

        def make(present: Obj) -> Obj:
            return self._spoken.read(call, patched(call, way, present, body))

        return await change_scale(self._stage, call, make)
