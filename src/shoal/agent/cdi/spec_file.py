"""Writes a CDI specification to a file, whole or not at all.

Guarantees: a reader sees the former or the new specification, never a part; an unchanged specification is not written
again, because runtimes read the folder at every change. Rejected: YAML. Every reader accepts JSON.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.agent.whole_file import replace_file
from shoal.devices.cdi_spec import CdiSpec
from shoal.units.errors import UserError, Where


def spec_bytes(spec: CdiSpec) -> bytes:
    return msgspec.json.format(msgspec.json.encode(spec), indent=2) + b"\n"


def write_spec(spec: CdiSpec, path: Path) -> bool:
    """Whether the file changed. Raises `UserError` if it cannot be written; the former file remains."""
    try:
        return replace_file(path, spec_bytes(spec))
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"the CDI specification cannot be written: {reason}",
            where=Where(file=str(path)),
            fix="run as a user who may write there, or give another folder with --out",
        ) from error
