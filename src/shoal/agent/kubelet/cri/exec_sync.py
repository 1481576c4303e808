"""A short command that the runtime runs to its end before it answers, such as a probe; it has no input."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from shoal.agent.kubelet.cri.calls import CallFailedError, RuntimeCalls
from shoal.agent.protos import cri_pb2 as messages
from shoal.units.errors import TemporaryError

_RETRY_S = 1.0


class ShortCommand:
    """Implements Command. `read` and `code` raise TemporaryError if the runtime did not run it."""

    def __init__(self, calls: RuntimeCalls, id_: str, command: Sequence[str]) -> None:
        self._answer = asyncio.ensure_future(_run(calls, id_, command))
        self._said = 0

    async def read(self) -> tuple[int, bytes] | None:
        answer = await self._answer
        while self._said < 2:
            self._said += 1
            data = answer.stdout if self._said == 1 else answer.stderr
            if data:
                return self._said, data
        return None

    async def write(self, data: bytes) -> None:
        """The input is not passed on."""

    def end_input(self) -> None:
        """There is no input."""

    def resize(self, columns: int, rows: int) -> None:
        """There is no terminal."""

    async def code(self) -> int:
        return (await self._answer).exit_code

    def kill(self) -> None:
        self._answer.cancel()


async def _run(calls: RuntimeCalls, id_: str, command: Sequence[str]) -> messages.ExecSyncResponse:
    try:
        return await calls.run(id_, list(command))
    except CallFailedError as error:
        raise TemporaryError(str(error), _RETRY_S) from None
