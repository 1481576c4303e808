"""Waits for the first answer of a server: a process that is started with it, or before it, retries until it answers.

Guarantees: the reason why it does not answer is reported at once and again at growing intervals; a refusal is an answer
and is raised.

Rejected: ending, and being restarted by a supervisor, which pauses for minutes after a few restarts.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.clock import Clock
from shoal.client.outage import Reminders
from shoal.client.port import Api
from shoal.client.refusals import BusyError
from shoal.client.served import answering

_FIRST_S, _MOST_S = 1.0, 30.0
Notify = Callable[[str], None]


async def first_answer(api: Api, clock: Clock, notify: Notify | None) -> None:
    """`notify` is called while the server does not answer, and when it does; None: BusyError is raised."""
    pause_s = _FIRST_S
    reminders, is_notified = Reminders(), False
    while True:
        try:
            await answering(api)
        except BusyError as error:
            if notify is None:
                raise
            if (lasting := reminders.report(clock.seconds())) is not None:
                notify(f"{error}; retrying{lasting} until it answers")
                is_notified = True
        else:
            break
        await clock.sleep(pause_s)
        pause_s = min(2 * pause_s, _MOST_S)
    if is_notified and notify is not None:
        notify("the server answers")
