"""Reports connections that break while they are closed in one log line: their users notice the break by failed
requests.

The loop reports such an end as a fatal error with a traceback (uvloop: a handle that is closed during the TLS
shutdown), which users cannot act on. All other reports of the loop are unchanged.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

_log = logging.getLogger("shoal")
_OF_A_CONNECTION = (
    "Fatal error on SSL protocol",
    "Fatal error on transport",
    "Fatal write error on",
    "Fatal read error on",
)


def log_in_one_line(loop: asyncio.AbstractEventLoop) -> None:
    loop.set_exception_handler(_reported)


def _reported(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    message = str(context.get("message", ""))
    if message.startswith(_OF_A_CONNECTION):
        _log.debug("a connection ended out of order: %s: %s", message, context.get("exception"))
    else:
        loop.default_exception_handler(context)
