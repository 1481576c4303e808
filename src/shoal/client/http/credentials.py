"""The credentials of requests (token, certificate, trusted authority), and when they have to be read again.

Files are read again every minute, because their issuer renews them. One that cannot be read
for the moment, or whose halves do not fit, leaves the last in use: renewers replace files, and a server that does not
take the old any more says so itself. Then a kubeconfig that has it all in itself is read again as well. A program is
asked for the first request, again before its answer expires, and when the server did not take it; requests that come
meanwhile wait for the same answer.
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
    """Times are of any clock that only goes on."""

    def __init__(self, access: Access, run: Run = run_program, wall_s: Callable[[], float] = time) -> None:
        self._access = access
        self._run = run
        self._wall_s = wall_s
        self._shown = Shown(access.token, access.certificate, access.key, access.authority)
        self._due_s = float("-inf")
        """When to look again."""
        self._expires_s = float("-inf")
        """Until when the answer of a program can be used."""
        self._is_refused = False
        self._asking: asyncio.Lock | None = None
        self._failure: tuple[ShoalError, float] | None = None
        """What the program could not do, and until when it is not asked again."""

    @property
    def may_change(self) -> bool:
        """Whether looking again can bring something else."""
        access = self._access
        files = (access.token_file, access.certificate_file, access.key_file, access.authority_file)
        return access.program is not None or access.again is not None or any(file is not None for file in files)

    def known(self, now_s: float) -> Shown | None:
        """None: a program has to be asked; `renewed` does."""
        if now_s < self._due_s:
            return self._shown
        if self._access.program is not None:
            return None
        self._shown = self._from_files(self._shown)
        self._due_s = now_s + _EVERY_S if self.may_change else float("inf")
        return self._shown

    async def renewed(self, now_s: float) -> Shown:
        """As `known`, and asks the program if there is one."""
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
        """The server did not take it: look again before the next request."""
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
        # A clock that is wrong makes it expire at once; the server's word counts then.
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
        """What stands in the kubeconfig by now."""
        if self._access.again is None:
            return last
        try:
            found = self._access.again()
        except UserError as error:
            # The file is being written at the moment.
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
