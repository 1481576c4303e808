"""A file a command will leave behind: refused before the work if it cannot be written, whole or absent after it.

Guarantees: the name never holds half a picture, because the bytes go to a temporary file that is renamed at the end; an
existing file keeps its contents until then. A private one may only be read by its owner, from its first moment: a
snapshot has no secrets, but shows which users run what on which nodes. Its owner decides whether to share it.

Rejected: opening the target at the start. A run that fails would leave an empty file where a good one was.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from shoal.units.errors import UserError, Where


class OutFile:
    """One future file; making this object proves that its folder takes new files."""

    def __init__(self, path: Path, suffix: str = "", *, is_private: bool = False) -> None:
        """`suffix`: the one its name has to have."""
        self.path = path
        self._where = Where(file=str(path))
        self._is_private = is_private
        if suffix and path.suffix.lower() != suffix:
            raise UserError(f"must end in {suffix}", where=self._where, fix="the picture is written as SVG")
        # A link keeps pointing where it pointed: its target is what gets replaced.
        self._target = Path(os.path.realpath(path))
        if self._target.exists() and not (self._target.is_file() and os.access(self._target, os.W_OK)):
            fix = "name a file that may be written"
            raise UserError("already exists and cannot be replaced", where=self._where, fix=fix)
        self._new_neighbour().unlink()

    def write(self, text: str | bytes) -> int:
        """How many bytes it has now."""
        data = text.encode() if isinstance(text, str) else text
        neighbour = self._new_neighbour()
        try:
            neighbour.write_bytes(data)
            if not self._is_private:
                neighbour.chmod(0o666 & ~_umask())
            neighbour.replace(self._target)
        except OSError as error:
            raise self._refusal(error) from error
        finally:
            with contextlib.suppress(OSError):
                neighbour.unlink()
        return len(data)

    def _new_neighbour(self) -> Path:
        try:
            handle, name = tempfile.mkstemp(dir=self._target.parent, prefix=f".{self._target.name[:80]}.")
        except OSError as error:
            raise self._refusal(error) from error
        os.close(handle)
        return Path(name)

    def _refusal(self, error: OSError) -> UserError:
        return UserError(f"cannot be written: {error.strerror or error}", where=self._where)


def _umask() -> int:
    """Temporary files are private; others get the rights any new file of this user gets."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
