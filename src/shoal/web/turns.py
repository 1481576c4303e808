"""Gives the viewers turns: one answer is computed for each of them at a time, and few may wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shoal.units.errors import UserError

_MOST = 4
"""Of one viewer at once: one is computed, and the others wait."""


class _Turns:
    """Those of one viewer."""

    def __init__(self) -> None:
        self.turn, self.wanted = asyncio.Lock(), 0


class ViewerTurns:
    def __init__(self) -> None:
        self._turns: dict[str, _Turns] = {}

    @asynccontextmanager
    async def of(self, token: str) -> AsyncIterator[None]:
        """Raises UserError where too many of the viewer wait. An empty token is of all who need none, who do not wait
        for one another."""
        if not token:
            yield
            return
        turns = self._turns.setdefault(token, _Turns())
        if turns.wanted >= _MOST:
            raise UserError("too many explanations are computed for you at once", fix="load this page again later")
        turns.wanted += 1
        try:
            async with turns.turn:
                yield
        finally:
            turns.wanted -= 1
            if not turns.wanted:
                del self._turns[token]
