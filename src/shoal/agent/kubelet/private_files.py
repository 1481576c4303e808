"""Writes files that only this user may read, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_private(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Raises OSError; the former file remains then."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(content)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
