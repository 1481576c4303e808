"""The client's side of SCRAM (RFC 5802): proves that it knows a password, and that the server knows it too."""

from __future__ import annotations

import base64
import hashlib
import hmac
import unicodedata

_MOST_ITERATIONS = 1_000_000
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


class ScramError(ValueError):
    """The server does not follow the protocol, or does not know the password."""


class ScramClient:
    def __init__(self, mechanism: str, username: str, password: str, nonce: str) -> None:
        self._hash = _HASHES[mechanism]
        self._password = unicodedata.normalize("NFKC", password).encode()
        self._nonce = nonce
        escaped = unicodedata.normalize("NFKC", username).replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={escaped},r={nonce}"
        self._expected = b""

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Raises ScramError."""
        text = server_first.decode(errors="replace")
        fields = _fields(text)
        nonce, salt, iterations = fields.get("r", ""), _decoded(fields.get("s", "")), fields.get("i", "")
        if not nonce.startswith(self._nonce) or nonce == self._nonce or not salt:
            raise ScramError("the server's first message of SCRAM is wrong")
        if not iterations.isdecimal() or len(iterations) > 7 or not 0 < int(iterations) <= _MOST_ITERATIONS:
            raise ScramError("the server asks for too many iterations of SCRAM")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, int(iterations))
        key = self._hmac(salted, b"Client Key")
        without_proof = f"c=biws,r={nonce}"
        signed = f"{self._bare},{text},{without_proof}".encode()
        signature = self._hmac(hashlib.new(self._hash, key).digest(), signed)
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        self._expected = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, server_final: bytes) -> None:
        """Raises ScramError if the server does not know the password."""
        found = _decoded(_fields(server_final.decode(errors="replace")).get("v", ""))
        if not self._expected or not hmac.compare_digest(found, self._expected):
            raise ScramError("the server does not prove that it knows the password")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._hash).digest()


def _fields(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.partition("=") for part in text.split(","))}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""
