"""The certificate of the pages, from files that another program may renew, as cert-manager does in a Secret.

Each new connection gets what the files have then, so that no process has to be restarted before a certificate expires.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

_log = logging.getLogger("shoal.web")
_FileState = tuple[int, int, int]


def renewed_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Raises OSError and SSLError for files that are no certificate and its key now. Later faults are logged, and the
    former certificate is shown."""
    files = _CertificateFiles(certificate, key)
    context = files.loaded()
    context.sni_callback = files.show
    return context


class _CertificateFiles:
    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate, self._key = certificate, key
        self._seen = self._states()
        self._current = self.loaded()

    def show(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        """Called at the start of each connection, also where the client names no server."""
        states = self._states()
        if states != self._seen:
            self._seen = states
            try:
                # A new one: files that do not belong together would break the one that is in use.
                self._current = self.loaded()
            except (OSError, ssl.SSLError) as error:
                _log.warning("the certificate cannot be renewed: %s: %s", self._certificate, error)
        connection.context = self._current

    def loaded(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate, self._key)
        return context

    def _states(self) -> list[_FileState | None]:
        return [_state(file) for file in (self._certificate, self._key)]


def _state(file: Path) -> _FileState | None:
    """Other content has another state; the files of a Secret are links that lead to new files then."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
