"""The first answer of a server, waited for: whoever is started together with it, or before it, asks until it speaks.

Guarantees: what keeps it from answering is told once; a refusal is an answer, and is raised.

Rejected: ending, and being started again by whoever keeps processes up. That pauses for minutes after a few times.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.clock import Clock
from shoal.client.port import Api
from shoal.client.refusals import BusyError
from shoal.client.served import answering

_FIRST_S, _MOST_S = 1.0, 30.0
Tell = Callable[[str], None]


async def first_answer(api: Api, clock: Clock, tell: Tell | None) -> None:
    """`tell` is told that nobody answers, and later that somebody does; None: nobody waits, BusyError is raised."""
    pause_s = _FIRST_S
    is_told = False
    while True:
        try:
            await answering(api)
        except BusyError as error:
            if tell is None:
                raise
            if not is_told:
                tell(f"{error}; it is asked again until it answers")
                is_told = True
        else:
            break
        await clock.sleep(pause_s)
        pause_s = min(2 * pause_s, _MOST_S)
    if is_told and tell is not None:
        tell("the server answers")
