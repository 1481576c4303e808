"""Keeps the prepared claims in a file, so that they stay prepared over restarts of the agent.

Guarantees: the file is replaced whole, and is written before a change takes effect, so after the end of the process at
any time it has at least what containers use. A file that cannot be read is never taken for an empty one, because its
devices would be given away a second time.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from shoal.agent.whole_file import replace_file
from shoal.devices.claim_devices import PreparedClaim
from shoal.units.errors import TemporaryError, UserError, Where

_VERSION = 1
_RETRY_S = 5.0


class _Content(msgspec.Struct, frozen=True):
    version: int
    checksum: int
    claims: dict[str, PreparedClaim]


class ClaimCheckpoint:
    """Raises `UserError` if there is a file that cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._claims = _read(path)

    @property
    def claims(self) -> Mapping[str, PreparedClaim]:
        """By uid."""
        return self._claims

    def add(self, claim: PreparedClaim) -> None:
        """Raises `TemporaryError` if the file cannot be written; nothing has changed then."""
        self._replace({**self._claims, claim.claim.uid: claim})

    def remove(self, uid: str) -> None:
        """Raises `TemporaryError` if the file cannot be written; nothing has changed then."""
        if uid in self._claims:
            self._replace({name: claim for name, claim in self._claims.items() if name != uid})

    def _replace(self, claims: dict[str, PreparedClaim]) -> None:
        content = _Content(_VERSION, _checksum(claims), claims)
        try:
            replace_file(self._path, msgspec.json.encode(content) + b"\n")
        except OSError as error:
            raise TemporaryError(f"{self._path}: cannot be written: {error.strerror or error}", _RETRY_S) from error
        self._claims = claims


def _checksum(claims: Mapping[str, PreparedClaim]) -> int:
    return zlib.crc32(msgspec.json.encode(claims))


def _read(path: Path) -> dict[str, PreparedClaim]:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    try:
        content = msgspec.json.decode(text, type=_Content)
    except msgspec.DecodeError as error:
        raise _unreadable(path, str(error)) from error
    if content.version != _VERSION:
        raise _unreadable(path, f"it has version {content.version}, this agent reads version {_VERSION}")
    if content.checksum != _checksum(content.claims):
        raise _unreadable(path, "its checksum does not match")
    return content.claims


def _unreadable(path: Path, why: str) -> UserError:
    fix = "drain the node and remove the file"
    return UserError(f"the prepared claims cannot be read: {why}", where=Where(file=str(path)), fix=fix)
