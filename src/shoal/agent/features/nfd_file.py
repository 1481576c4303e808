"""Writes labels to a file that Node Feature Discovery reads: a line `name=value` for each."""

from __future__ import annotations

from pathlib import Path

from shoal.agent.whole_file import replace_file
from shoal.devices.node_metadata import NodeMetadata
from shoal.units.errors import UserError, Where


class NfdFile:
    """Implements LabelTarget."""

    def __init__(self, path: Path, *, is_lasting: bool) -> None:
        """`is_lasting`: the file remains when the process ends."""
        self._path, self._is_lasting = path, is_lasting

    async def write(self, found: NodeMetadata) -> str:
        text = "".join(f"{name}={value}\n" for name, value in found.labels.items())
        try:
            is_changed = replace_file(self._path, text.encode())
        except OSError as error:
            raise UserError(
                f"the labels cannot be written: {error.strerror or error}",
                where=Where(file=str(self._path)),
                fix="run as a user who may write there, or give another file with --output-file",
            ) from error
        return f"{self._path}: {len(found.labels)} labels" if is_changed else ""

    async def close(self) -> None:
        if not self._is_lasting:
            self._path.unlink(missing_ok=True)
