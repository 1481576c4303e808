"""Connections that break while they are closed, told in a line: whoever used one has heard of it by its requests.

The loop reports such an end as a fatal error with a traceback (uvloop: a handle that is closed while TLS says goodbye),
and nobody at a terminal can do anything about it. Every other report of the loop stays what it is.
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


def tell_in_a_line(loop: asyncio.AbstractEventLoop) -> None:
    loop.set_exception_handler(_told)


def _told(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    message = str(context.get("message", ""))
    if message.startswith(_OF_A_CONNECTION):
        _log.debug("a connection ended out of order: %s: %s", message, context.get("exception"))
    else:
        loop.default_exception_handler(context)
