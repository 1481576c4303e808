"""Authenticates users by the client certificate of the connection or by a bearer token.

The order is Kubernetes': a certificate counts before a token. Nothing shown at all is the anonymous user; something
shown that is not good is refused, whatever the anonymous user may do. TLS has already checked that a certificate was
issued here and is in its time, so what is left is reading the name; that is kept per certificate.
"""

from __future__ import annotations

import hashlib
import hmac

import msgspec
from cryptography import x509

from shoal.api.subjects import common_name, organizations
from shoal.embedded.apiserver.calls import ANONYMOUS, Actor
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.security.authority import ADMIN, ADMIN_GROUPS, Authority
from shoal.embedded.apiserver.security.legacy_tokens import TokenError
from shoal.embedded.apiserver.security.service_accounts import DEFAULT_AUDIENCES, INVALID_TOKEN, TokenSigner
from shoal.embedded.apiserver.status import unauthorized

AUTHENTICATED = "system:authenticated"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_KEPT = 1024


class Reviewed(msgspec.Struct, frozen=True):
    """What was found of a token: an actor, or why there is none."""

    actor: Actor | None = None
    audiences: tuple[str, ...] = ()
    fault: str = ""


class Authenticator:
    """Recognises actors; keeps what it read from certificates."""

    def __init__(self, authority: Authority, signer: TokenSigner, reader: Reader) -> None:
        self._admin_token = authority.admin_token.encode()
        self._signer = signer
        self._reader = reader
        self._by_certificate: dict[bytes, Actor] = {}

    def authenticate(self, certificate: bytes | None, authorization: str | None, now_s: int) -> Actor:
        """The certificate is DER (`ssl_object.getpeercert(True)`), checked by TLS. Raises 401 for what is not good."""
        if certificate:
            found = self._by_certificate.get(certificate)
            return found if found is not None else self._from_certificate(certificate)
        if authorization is None:
            return ANONYMOUS
        token = _bearer(authorization)
        if token is None:
            return ANONYMOUS
        actor = self.review(token, (), now_s).actor
        if actor is None:
            raise unauthorized()
        return actor

    def review(self, token: str, audiences: tuple[str, ...], now_s: int) -> Reviewed:
        """The user of a token, and its audiences among the requested ones; without any, this server's own."""
        asked = audiences or DEFAULT_AUDIENCES
        if hmac.compare_digest(token.encode(errors="surrogatepass"), self._admin_token):
            common = tuple(one for one in asked if one in DEFAULT_AUDIENCES)
            if common:
                return Reviewed(Actor(ADMIN, (*ADMIN_GROUPS, AUTHENTICATED)), common)
            return Reviewed(fault=INVALID_TOKEN)
        try:
            verified = self._signer.verify(token, self._reader, now_s, asked)
        except TokenError as error:
            return Reviewed(fault=INVALID_TOKEN if str(error) == INVALID_TOKEN else f"[{INVALID_TOKEN}, {error}]")
        return Reviewed(verified.actor, verified.audiences)

    def _from_certificate(self, certificate: bytes) -> Actor:
        subject = x509.load_der_x509_certificate(certificate).subject
        name = common_name(subject)
        if not name:
            raise unauthorized()
        shown = f"X509SHA256={hashlib.sha256(certificate).hexdigest()}"
        actor = Actor(name, (*organizations(subject), AUTHENTICATED), extra=((_CREDENTIAL, (shown,)),))
        if len(self._by_certificate) >= _KEPT:
            self._by_certificate.clear()
        self._by_certificate[certificate] = actor
        return actor


def _bearer(authorization: str) -> str | None:
    """The token of a `Bearer` header; other schemes say nothing to this server, as if they were not there."""
    scheme, _, token = authorization.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        return None
    return token.strip()
