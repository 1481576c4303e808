"""Writes a CDI specification to a file, whole or not at all.

Guarantees: a reader sees the former or the new specification, never a part; an unchanged specification is not written
again, because runtimes read the folder at every change. Rejected: YAML. Every reader accepts JSON.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from shoal.devices.cdi_spec import CdiSpec
from shoal.units.errors import UserError, Where

_READABLE = 0o644


def spec_bytes(spec: CdiSpec) -> bytes:
    return msgspec.json.format(msgspec.json.encode(spec), indent=2) + b"\n"


def write_spec(spec: CdiSpec, path: Path) -> bool:
    """Whether the file changed. Raises `UserError` if it cannot be written; the former file remains."""
    content = spec_bytes(spec)
    try:
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
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"the CDI specification cannot be written: {reason}",
            where=Where(file=str(path)),
            fix="run as a user who may write there, or give another folder with --out",
        ) from error
    return True
