"""Keeps the labels of this machine's node true: at an interval, and soon after the driver reports something else.

A fault of the driver, of the cluster or of a file is reported once and leaves the labels as they are; the next attempt
follows after the usual time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from shoal.client.clock import Clock
from shoal.client.refusals import RefusedError
from shoal.devices.feature_labels import FeatureError
from shoal.devices.node_metadata import NodeMetadata
from shoal.units.errors import TemporaryError, UserError

Read = Callable[[], Awaitable[NodeMetadata]]
_LOOK_S = 5.0
"""How often the driver is asked for changes."""


class LabelTarget(Protocol):
    async def write(self, found: NodeMetadata) -> str:
        """What changed, in a line; empty if nothing did. Raises `UserError` and the refusals of the API server."""
        ...

    async def close(self) -> None: ...


async def write_once(read: Read, target: LabelTarget, tell: Callable[[str], None]) -> None:
    """Raises whatever prevents it."""
    found = await read()
    for line in (*found.left_out, await target.write(found) or "the labels are up to date"):
        tell(line)


async def keep_written(
    read: Read,
    target: LabelTarget,
    clock: Clock,
    interval_s: float | None,
    tell: Callable[[str], None],
) -> None:
    """Until it is cancelled. `interval_s`: how often labels are written again without a change; None: never."""
    written: NodeMetadata | None = None
    told: tuple[str, ...] = ()
    left_s = 0.0  # not by the time of day, which can be set meanwhile
    pause_s = _LOOK_S if interval_s is None else min(_LOOK_S, interval_s)
    while True:
        lines: tuple[str, ...] = ()
        try:
            found = await read()
            if found != written or (interval_s is not None and left_s <= 0.0):
                lines = (*found.left_out, await target.write(found))
                written = found
                left_s = interval_s or 0.0
            else:
                lines = told
        except (FeatureError, RefusedError, TemporaryError, UserError) as error:
            lines = (f"the labels are not written: {error}",)
            written = None
        for line in lines:
            if line and line not in told:
                tell(line)
        told = lines
        await clock.sleep(pause_s)
        left_s -= pause_s
