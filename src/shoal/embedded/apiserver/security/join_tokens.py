"""Stores tokens with which machines join the cluster, and checks them.

`shoal node token` writes the file, and the server reads it at each attempt to join. It has the SHA-256 hash of each
token, never the token; the secret part is random and long, so a salt or a slow hash would add nothing. A token expires,
and its number is bounded. Rejected: Kubernetes' bootstrap tokens, which are Secrets with the token in plain text.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import secrets
import string
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from shoal.embedded.apiserver.private_files import PRIVATE_FILE, make_private_folder, write_private
from shoal.units.errors import UserError, Where

FILE = "join-tokens.json"
MOST = 16
"""Valid tokens at once."""
LONGEST_S = 7 * 24 * 3600
_ALPHABET = string.ascii_lowercase + string.digits
_NAME, _SECRET = 6, 32


class JoinToken(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    hash: str
    created_s: float
    expires_s: float


class _Stored(msgspec.Struct, frozen=True):
    tokens: tuple[JoinToken, ...] = ()


class JoinTokens:
    """`folder`: where the cluster's keys are."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def create(self, now_s: float, life_s: float) -> str:
        """Returns the token, which is stored nowhere."""
        make_private_folder(self._file.parent)
        with self._locked():
            valid = self.valid(now_s)
            if len(valid) >= MOST:
                fix = "delete one with `shoal node revoke TOKEN`, or wait until one expires"
                raise UserError(f"there are {MOST} valid tokens, the most allowed", fix=fix)
            name, secret = _random(_NAME), _random(_SECRET)
            token = f"{name}.{secret}"
            self._write((*valid, JoinToken(name, _hash(token), now_s, now_s + life_s)))
        return token

    def revoke(self, name: str, now_s: float) -> bool:
        """Whether there was a valid token of that name."""
        if not self._file.exists():
            return False
        with self._locked():
            valid = self.valid(now_s)
            left = tuple(one for one in valid if one.name != name)
            self._write(left)
        return len(left) < len(valid)

    def valid(self, now_s: float) -> tuple[JoinToken, ...]:
        """The tokens that have not expired. Raises UserError for a damaged file."""
        try:
            found = msgspec.json.decode(self._file.read_bytes(), type=_Stored)
        except FileNotFoundError:
            return ()
        except msgspec.DecodeError:
            fix = "delete it; machines that have joined are not affected"
            raise UserError("the file of join tokens is damaged", where=Where(str(self._file)), fix=fix) from None
        return tuple(one for one in found.tokens if one.expires_s > now_s)

    def name_of(self, token: str, now_s: float) -> str:
        """The name of a valid token; empty for any other text. Takes the same time for each wrong secret."""
        wanted = _hash(token).encode()
        found = ""
        for one in self.valid(now_s):
            if hmac.compare_digest(one.hash.encode(), wanted):
                found = one.name
        return found

    def _write(self, tokens: tuple[JoinToken, ...]) -> None:
        write_private(self._file, msgspec.json.encode(_Stored(tokens)))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self._file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
