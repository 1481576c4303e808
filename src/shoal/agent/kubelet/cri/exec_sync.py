"""A short command that the runtime runs to its end before it answers, such as a probe; it has no input."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from shoal.agent.kubelet.cri.calls import CallFailedError, RuntimeCalls

_NOT_RUN = 126


class ShortCommand:
    """Implements Command."""

    def __init__(self, calls: RuntimeCalls, id_: str, command: Sequence[str]) -> None:
        self._answer = asyncio.ensure_future(calls.run(id_, list(command)))
        self._said = 0
        self._fault = ""

    async def read(self) -> tuple[int, bytes] | None:
        try:
            answer = await self._answer
        except CallFailedError as error:
            if self._fault:
                return None
            self._fault = str(error)
            return 2, self._fault.encode()
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
        try:
            return (await self._answer).exit_code
        except CallFailedError:
            return _NOT_RUN

    def kill(self) -> None:
        self._answer.cancel()
