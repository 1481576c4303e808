"""The token that requests bear. One in a file is read again every minute, because whoever issued it renews it there.

A file that cannot be read for the moment leaves the last token in use: renewers replace files, and a server that does
not take the old one any more says so itself.
"""

from __future__ import annotations

from shoal.store.kube.access import Access
from shoal.units.errors import UserError, Where

_EVERY_S = 60.0


class Bearer:
    def __init__(self, access: Access) -> None:
        self._file = access.token_file
        self._where = access.where
        self._token = access.token
        self._read_at: float | None = None

    def token(self, now_s: float) -> str:
        """`now_s` is any time that only goes on. Empty: there is none."""
        if self._file is not None and (self._read_at is None or now_s - self._read_at >= _EVERY_S):
            try:
                self._token = self._file.read_text(encoding="utf-8").strip() or self._token
            except (OSError, UnicodeDecodeError) as error:
                if not self._token:
                    what = f"the token cannot be read from {self._file}: {getattr(error, 'strerror', None) or error}"
                    raise UserError(what, where=Where(self._where)) from None
            self._read_at = now_s
        return self._token

    def forget(self) -> None:
        """The server did not take it: look at the file before the next request."""
        self._read_at = None
