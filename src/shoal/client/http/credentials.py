"""Reads the credentials of requests (token, certificate, trusted authority), and determines when to read them again.

Files are read again every minute, because their issuer renews them. If a file cannot be read at the moment, or a key
does not match its certificate, the previous credentials stay in use: the issuer may be replacing the files, and a
server that no longer accepts the old ones reports that. Then a kubeconfig that contains its credentials is read again
as well. An exec plugin is called for the first request, again before its credentials expire, and when the server
rejects them; requests that arrive meanwhile wait for the same result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import time

import msgspec

from shoal.client.http.access import Access, ExecProgram, is_header_text
from shoal.client.http.exec_plugin import Ticket, run_program
from shoal.units.errors import ShoalError, UserError, Where

_log = logging.getLogger("shoal.store")
_EVERY_S = 60.0
_AGAIN_S = 5.0
_MARGIN = 0.2
_LONGEST_MARGIN_S = 60.0
_SHORTEST_S = 10.0
Run = Callable[[ExecProgram, str], Awaitable[Ticket]]


class Shown(msgspec.Struct, frozen=True):
    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    authority: str = ""

    def __repr__(self) -> str:
        return "Shown(...)"


class Credentials:
    """Times are those of any monotonic clock."""

    def __init__(self, access: Access, run: Run = run_program, wall_s: Callable[[], float] = time) -> None:
        self._access = access
        self._run = run
        self._wall_s = wall_s
        self._shown = Shown(access.token, access.certificate, access.key, access.authority)
        self._due_s = float("-inf")
        """The time of the next check."""
        self._expires_s = float("-inf")
        """The expiry of the exec plugin's credentials."""
        self._is_refused = False
        self._asking: asyncio.Lock | None = None
        self._failure: tuple[ShoalError, float] | None = None
        """The failure of the exec plugin, and the time until which it is not called again."""

    @property
    def may_change(self) -> bool:
        """Whether reading again can give other credentials."""
        access = self._access
        files = (access.token_file, access.certificate_file, access.key_file, access.authority_file)
        return access.program is not None or access.again is not None or any(file is not None for file in files)

    def known(self, now_s: float) -> Shown | None:
        """The current credentials; None if the exec plugin must be called, which `renewed` does."""
        if now_s < self._due_s:
            return self._shown
        if self._access.program is not None:
            return None
        self._shown = self._from_files(self._shown)
        self._due_s = now_s + _EVERY_S if self.may_change else float("inf")
        return self._shown

    async def renewed(self, now_s: float) -> Shown:
        """The current credentials; calls the exec plugin if there is one."""
        self._asking = self._asking or asyncio.Lock()
        async with self._asking:
            known = self.known(now_s)
            if known is not None or self._access.program is None:
                return known or self._shown
            if self._failure is not None and now_s < self._failure[1]:
                raise self._failure[0]
            try:
                ticket = await self._run(self._access.program, self._access.where)
            except ShoalError as error:
                if now_s >= self._expires_s:
                    self._failure = error, now_s + _AGAIN_S
                    raise
                self._due_s = now_s + _AGAIN_S
                return self._shown
            self._failure = None
            self._take(ticket, now_s)
            return self._shown

    def forget(self) -> None:
        """The server rejected the credentials: read them again before the next request."""
        self._is_refused = True
        self._due_s = self._expires_s = float("-inf")

    def _take(self, ticket: Ticket, now_s: float) -> None:
        shown = self._from_files(self._shown)
        self._shown = Shown(
            token=self._access.token or ticket.token,
            certificate=ticket.certificate or self._access.certificate,
            key=ticket.key or self._access.key,
            authority=shown.authority,
        )
        if ticket.expires_s is None:
            self._due_s = self._expires_s = float("inf")
            return
        # With a wrong clock it would expire at once; the server decides then.
        lasts_s = max(ticket.expires_s - self._wall_s(), _SHORTEST_S)
        self._expires_s = now_s + lasts_s
        self._due_s = self._expires_s - min(lasts_s * _MARGIN, _LONGEST_MARGIN_S)

    def _from_files(self, last: Shown) -> Shown:
        if self._is_refused and self._access.program is None:
            last = self._written_anew(last)
        self._is_refused = False
        access = self._access
        certificate, key = _bytes_of(access.certificate_file), _bytes_of(access.key_file)
        authority = _bytes_of(access.authority_file).decode("ascii", "replace")
        return Shown(
            token=last.token if access.token_file is None else self._token(access.token_file, last.token),
            certificate=certificate or last.certificate,
            key=key or last.key,
            authority=authority or last.authority,
        )

    def _written_anew(self, last: Shown) -> Shown:
        """The current content of the kubeconfig."""
        if self._access.again is None:
            return last
        try:
            found = self._access.again()
        except UserError as error:
            # The file may be in the middle of a write.
            _log.warning("the credentials cannot be read again: %s", error)
            return last
        return Shown(found.token, found.certificate, found.key, found.authority)

    def _token(self, file: Path, last: str) -> str:
        try:
            token = file.read_text(encoding="utf-8").strip()
            if not is_header_text(token) and not last:
                raise UserError(f"the token in {file} holds a line break", where=Where(self._access.where))
            return token if token and is_header_text(token) else last
        except (OSError, UnicodeDecodeError) as error:
            if not last:
                what = f"the token cannot be read from {file}: {getattr(error, 'strerror', None) or error}"
                raise UserError(what, where=Where(self._access.where)) from None
            return last


def _bytes_of(file: Path | None) -> bytes:
    try:
        return file.read_bytes() if file is not None else b""
    except OSError:
        return b""
