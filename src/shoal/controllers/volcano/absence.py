"""Whether Volcano itself is away, so that its objects are ours to look after.

What is asked of `controllers/queues/presence.py` stands here as a protocol: who composes hands in the real one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Presence(Protocol):
    @property
    def is_there(self) -> bool:
        """Volcano runs in the cluster: everything is left to it."""
        ...

    async def look(self) -> None: ...

    async def run(self, moved: Callable[[], None]) -> None:
        """Until cancelled; `moved` is called when it comes or goes."""
        ...


IsAway = Callable[[], bool]
