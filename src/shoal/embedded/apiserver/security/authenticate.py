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
from shoal.client.kubelet.node_joining import NODE_USER, REMOVED
from shoal.embedded.apiserver.calls import ANONYMOUS, Actor
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.security.authority import ADMIN, ADMIN_GROUPS, Authority
from shoal.embedded.apiserver.security.join_access import JoinAuthenticator
from shoal.embedded.apiserver.security.joined_nodes import JoinedNodes
from shoal.embedded.apiserver.security.legacy_tokens import TokenError
from shoal.embedded.apiserver.security.service_accounts import DEFAULT_AUDIENCES, INVALID_TOKEN, TokenSigner
from shoal.embedded.apiserver.status import ApiError, unauthorized

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

    def __init__(
        self,
        authority: Authority,
        signer: TokenSigner,
        reader: Reader,
        nodes: JoinedNodes | None = None,
        joining: JoinAuthenticator | None = None,
    ) -> None:
        """`nodes`: removed ones are refused; `joining`: of join tokens, if the cluster accepts machines."""
        self._admin_token = authority.admin_token.encode()
        self._signer = signer
        self._reader = reader
        self._nodes = JoinedNodes(None) if nodes is None else nodes
        self._joining = joining
        self._by_certificate: dict[bytes, tuple[Actor, str]] = {}

    def authenticate(
        self, certificate: bytes | None, authorization: str | None, now_s: int, address: str = ""
    ) -> Actor:
        """The certificate is DER (`ssl_object.getpeercert(True)`), checked by TLS. Raises 401 for what is not good.
        `address`: of the client, which may not try wrong join tokens without limit."""
        if certificate:
            actor, serial = self._by_certificate.get(certificate) or self._from_certificate(certificate)
            if self._nodes.is_removed(serial):
                words = f"{actor.name.removeprefix(NODE_USER)} was removed from this cluster by an administrator"
                raise ApiError(401, REMOVED, f"the node {words}")
            return actor
        if authorization is None:
            return ANONYMOUS
        token = _bearer(authorization)
        if token is None:
            return ANONYMOUS
        if self._joining is not None and self._joining.accepts(token):
            return self._joining.authenticate(token, address, now_s)
        reviewed = self.review(token, (), now_s).actor
        if reviewed is None:
            raise unauthorized()
        return reviewed

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

    def _from_certificate(self, certificate: bytes) -> tuple[Actor, str]:
        """The user, and the serial number."""
        parsed = x509.load_der_x509_certificate(certificate)
        subject = parsed.subject
        name = common_name(subject)
        if not name:
            raise unauthorized()
        shown = f"X509SHA256={hashlib.sha256(certificate).hexdigest()}"
        actor = Actor(name, (*organizations(subject), AUTHENTICATED), extra=((_CREDENTIAL, (shown,)),))
        if len(self._by_certificate) >= _KEPT:
            self._by_certificate.clear()
        found = self._by_certificate[certificate] = (actor, f"{parsed.serial_number:x}")
        return found


def _bearer(authorization: str) -> str | None:
    """The token of a `Bearer` header; other schemes say nothing to this server, as if they were not there."""
    scheme, _, token = authorization.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        return None
    return token.strip()
