"""A file that only its owner may read: refused before the work if it cannot be written, whole or absent after it.

What is left of a cluster in a snapshot is no secret, and still says who runs what where. Nobody else gets to read it
because it was written, not even for a moment; whoever wants to give it away does that on purpose.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from shoal.units.errors import UserError, Where


class PrivateFile:
    """One future file; making this object proves that its folder takes new files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._where = Where(file=str(path))
        self._target = Path(os.path.realpath(path))
        if self._target.exists() and not self._target.is_file():
            raise UserError("is there already and no file", where=self._where, fix="name a file, or - for stdout")
        self._neighbour().unlink()

    def write(self, data: bytes) -> int:
        """How many bytes it has now."""
        neighbour = self._neighbour()
        try:
            neighbour.write_bytes(data)
            neighbour.replace(self._target)
        except OSError as error:
            raise self._refusal(error) from error
        finally:
            with contextlib.suppress(OSError):
                neighbour.unlink()
        return len(data)

    def _neighbour(self) -> Path:
        """Its mode is 0600 from its first moment."""
        try:
            handle, name = tempfile.mkstemp(dir=self._target.parent, prefix=f".{self._target.name[:80]}.")
        except OSError as error:
            raise self._refusal(error) from error
        os.close(handle)
        return Path(name)

    def _refusal(self, error: OSError) -> UserError:
        return UserError(f"cannot be written: {error.strerror or error}", where=self._where)
