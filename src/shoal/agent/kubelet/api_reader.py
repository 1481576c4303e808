"""Reads objects of the API server as the pod that the agent runs in, with Python's own HTTP client.

The agent asks rarely and for little, so it does without the client of controllers and its event loop. The token is read
for each request, because the kubelet replaces it.
"""

from __future__ import annotations

import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from shoal.client.http.access import Access
from shoal.units.errors import TemporaryError

_LIMIT_S, _RETRY_S = 10.0, 5.0
_OK, _LONGEST_WORDS = 200, 200


class ApiReader:
    def __init__(self, access: Access) -> None:
        self._access = access

    def get(self, path: str) -> bytes:
        """Raises `TemporaryError` with the server's words if it refuses or does not answer."""
        try:
            connection = self._connected()
            try:
                connection.request("GET", path, headers={"Accept": "application/json", **self._authorization()})
                answer = connection.getresponse()
                body = answer.read()
            finally:
                connection.close()
        except (OSError, HTTPException) as error:
            raise TemporaryError(f"{self._access.server} does not answer: {error}", _RETRY_S) from error
        if answer.status != _OK:
            words = body.decode(errors="replace")[:_LONGEST_WORDS]
            raise TemporaryError(f"GET {path} is answered with {answer.status}: {words}", _RETRY_S)
        return body

    def _connected(self) -> HTTPConnection:
        parts = urlsplit(self._access.server)
        host, file = parts.hostname or "", self._access.authority_file
        if parts.scheme == "http":
            return HTTPConnection(host, parts.port, timeout=_LIMIT_S)
        trusted = ssl.create_default_context(cafile=None if file is None else str(file))
        return HTTPSConnection(host, parts.port, timeout=_LIMIT_S, context=trusted)

    def _authorization(self) -> dict[str, str]:
        file = self._access.token_file
        return {} if file is None else {"Authorization": f"Bearer {file.read_text().strip()}"}
