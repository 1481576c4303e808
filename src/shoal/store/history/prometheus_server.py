"""Asks a Prometheus-compatible server by its HTTP API.

Guarantees: an answer is bounded in size and time; no redirect is followed, so the token goes to no other host; the
token is read from its file for each question and is in no message. Questions may be asked in several threads.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import msgspec

from shoal.units.errors import TemporaryError, UserError, Where, one_line

_MOST_BYTES = 128 << 20
_PIECE = 1 << 20
_OK = 200
_LONGEST_ERROR = 300


class PrometheusAddress(msgspec.Struct, frozen=True):
    url: str
    """With the path under which its API is, without `/api/v1`."""
    token_file: Path | None = None
    authority_file: Path | None = None
    """Certificates that are trusted instead of those of the system."""
    selector: str = ""
    """Matchers that all series must have, as in `job="dcgm-exporter"`."""
    request_s: float = 10.0
    """For one question."""
    total_s: float = 25.0
    """For all questions about a window."""

    def check(self) -> None:
        """Raises UserError for an address or a file that cannot be used."""
        where = Where(path="--prometheus")
        try:
            parts = urlsplit(self.url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            parts, host = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
            raise UserError("is not an HTTP address", where=where, fix="write it as http://prometheus.monitoring:9090")
        if parts.username is not None or parts.password is not None:
            raise UserError("contains credentials", where=where, fix="write a token to a file and name it")
        self.trusted()
        if self.token_file is not None:
            self.token()

    def token(self) -> str:
        """Raises UserError for a file that has none."""
        path = self.token_file
        if path is None:
            return ""
        try:
            found = path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot be read: {error}", where=Where(file=str(path))) from None
        if not found or not found.isascii() or any(one.isspace() for one in found):
            raise UserError("has no token", where=Where(file=str(path)), fix="write the token on one line")
        return found

    def trusted(self) -> ssl.SSLContext:
        """Raises UserError for a file without certificates."""
        path = self.authority_file
        try:
            return ssl.create_default_context(cafile=None if path is None else str(path))
        except (OSError, ssl.SSLError) as error:
            raise UserError(f"cannot be read as certificates: {error}", where=Where(file=str(path))) from None


class PrometheusServer:
    def __init__(self, address: PrometheusAddress, monotonic_s: Callable[[], float]) -> None:
        self.address = address
        self._monotonic_s = monotonic_s
        self._trusted = address.trusted() if address.url.startswith("https:") else None

    def ask(self, what: str, query: Mapping[str, str], seconds: float) -> bytes:
        """The answer to a question of the API, as `query_range`. Raises TemporaryError, and UserError for the file of
        the token."""
        parts = urlsplit(self.address.url)
        patience = max(0.1, min(self.address.request_s, seconds))
        end_s = self._monotonic_s() + patience
        connection = self._connection(parts.hostname or "", parts.port, patience)
        try:
            words = urlencode({**query, "timeout": f"{round(patience * 1000)}ms"})
            headers = {"Accept": "application/json"}
            if token := self.address.token():
                headers["Authorization"] = f"Bearer {token}"
            connection.request("GET", f"{parts.path.rstrip('/')}/api/v1/{what}?{words}", headers=headers)
            answer = connection.getresponse()
            body = self._body(answer, end_s)
            if answer.status != _OK:
                raise TemporaryError(f"{self.address.url} answered {_refusal(answer.status, body)}", 1.0)
            return body
        except TimeoutError:
            raise TemporaryError(f"{self.address.url} did not answer in {patience:.0f} s", 1.0) from None
        except (OSError, http.client.HTTPException) as error:
            text = str(error) or type(error).__name__
            raise TemporaryError(f"{self.address.url} cannot be asked: {one_line(text)}", 1.0) from None
        finally:
            connection.close()

    def _connection(self, host: str, port: int | None, patience: float) -> http.client.HTTPConnection:
        if self._trusted is not None:
            return http.client.HTTPSConnection(host, port, timeout=patience, context=self._trusted)
        return http.client.HTTPConnection(host, port, timeout=patience)

    def _body(self, answer: http.client.HTTPResponse, end_s: float) -> bytes:
        found = bytearray()
        # One read of the socket at a time: a server that sends slowly does not stop the clock.
        while piece := answer.read1(_PIECE):
            found += piece
            if len(found) > _MOST_BYTES:
                raise OSError(f"the answer is longer than {_MOST_BYTES >> 20} MiB")
            if self._monotonic_s() > end_s:
                raise TimeoutError
        if answer.length:
            raise http.client.IncompleteRead(b"", answer.length)
        return bytes(found)


class _Refused(msgspec.Struct):
    error: str = ""


def _refusal(status: int, body: bytes) -> str:
    if 300 <= status < 400:
        return f"with status {status}; redirects are not followed"
    try:
        text = msgspec.json.decode(body, type=_Refused).error
    except msgspec.DecodeError:
        text = ""
    return f"with status {status}" + (f": {one_line(text)[:_LONGEST_ERROR]}" if text else "")
