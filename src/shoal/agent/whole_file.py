"""Writes a file whole or not at all: a reader sees the former or the new content, never a part."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_READABLE = 0o644


def replace_file(path: Path, content: bytes) -> bool:
    """Whether the file changed; equal content is not written again. Raises `OSError`; the former file remains."""
    if path.is_file() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.chmod(_READABLE)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return True
