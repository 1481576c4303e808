"""Reads a file that programs outside of the agent, such as containers, can replace by anything.

Guarantees: no link is followed in the last part of the path, a pipe or device does not block, and the amount that is
read is bounded.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_foreign(path: Path, most_bytes: int) -> bytes:
    """The beginning of a plain file. Raises `OSError`, also for what is no plain file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        return os.read(descriptor, most_bytes)
    finally:
        os.close(descriptor)
