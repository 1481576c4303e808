"""A port for a server whose configuration has to name it before it listens.

Not one that the system gives for the asking: that is given to whoever asks next as well, and between the look and the
use many ask. These lie below what the system gives away, and every process of tests has some of its own.
"""

from __future__ import annotations

import os
import socket
from itertools import count

_FIRST, _SHARES, _EACH = 20_000, 100, 100
_numbers = count()


def free_port() -> int:
    own = _FIRST + os.getpid() % _SHARES * _EACH
    while True:
        port = own + next(_numbers) % _EACH
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
