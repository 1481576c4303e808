"""Names how far a NodePool is managed, by its annotation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

MODE: Final = "shoal.dev/node-scaling"
PoolMode = Literal["active", "dry-run", "paused"]
MODES: Final[tuple[PoolMode, ...]] = ("active", "dry-run", "paused")


def pool_mode(annotations: Mapping[str, str]) -> PoolMode:
    """An unknown value pauses the pool: nothing is done that was perhaps meant to be forbidden."""
    written = annotations.get(MODE, "active")
    return next((mode for mode in MODES if mode == written), "paused")
