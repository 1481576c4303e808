"""Tokens of service accounts: signed claims about account, audience and expiry.

A token is good while its signature, audience and times are, and while the service account it names, and the pod,
secret or node it is bound to, are still there with the same uid: deleting a pod ends its tokens at once.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shoal.client.certificates import parse_key
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.security.legacy_tokens import (
    LEGACY_ISSUER,
    LegacyClaims,
    TokenError,
    check_legacy,
    legacy_claims,
    taken_back,
)
from shoal.embedded.apiserver.security.rules import quoted

ISSUER = "https://kubernetes.default.svc.cluster.local"
DEFAULT_AUDIENCES = (ISSUER,)
INVALID_TOKEN = "invalid bearer token"  # noqa: S105 - words, not a secret
ALGORITHM = "ES256"
_LEEWAY_S = 10
_PREFIX = "authentication.kubernetes.io/"


class Bound(msgspec.Struct, frozen=True):
    """The object that a token is bound to; for a pod on a node, the token names the node as well."""

    kind: str
    name: str
    uid: str
    node_name: str = ""
    node_uid: str = ""


class TokenSubject(msgspec.Struct, frozen=True):
    """The service account a token is for."""

    namespace: str
    name: str
    uid: str

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"


class Verified(msgspec.Struct, frozen=True):
    """What a good token says: who, and for which of the asked audiences."""

    actor: Actor
    audiences: tuple[str, ...]


class _Named(msgspec.Struct, frozen=True):
    name: str
    uid: str


class _Own(msgspec.Struct, frozen=True):
    namespace: str
    serviceaccount: _Named
    pod: _Named | None = None
    secret: _Named | None = None
    node: _Named | None = None


class _Claims(msgspec.Struct, frozen=True):
    """What a token must say, and in which form."""

    aud: tuple[str, ...]
    exp: int
    nbf: int
    jti: str
    own: _Own = msgspec.field(name="kubernetes.io")


class TokenSigner:
    """Issues and checks tokens with one key. Signatures are checked once per token; what may change, every time."""

    _KEPT = 4096

    def __init__(self, signing_key: bytes, used: Callable[[str, str], None] = lambda _, __: None) -> None:
        """`used` is called with the namespace and name of each Secret whose token is used."""
        self._used = used
        self._key = parse_key(signing_key)
        self._public = self._key.public_key()
        self._key_id = key_id(self._public)
        self._claims: dict[str, _Claims | LegacyClaims] = {}

    def issue(
        self, holder: TokenSubject, audiences: Sequence[str], now_s: int, lifetime_s: int, bound: Bound | None = None
    ) -> str:
        own: dict[str, Any] = {"namespace": holder.namespace}
        if bound is not None:
            own[bound.kind.lower()] = {"name": bound.name, "uid": bound.uid}
            if bound.node_name:
                own["node"] = {"name": bound.node_name, "uid": bound.node_uid}
        own["serviceaccount"] = {"name": holder.name, "uid": holder.uid}
        claims = {
            "aud": list(audiences),
            "exp": now_s + lifetime_s,
            "iat": now_s,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": own,
            "nbf": now_s,
            "sub": holder.user,
        }
        return jwt.encode(claims, self._key, ALGORITHM, {"kid": self._key_id})

    def issue_legacy(self, holder: TokenSubject, secret: str) -> str:
        """One that is good for as long as the Secret holds it."""
        claims = legacy_claims(holder.namespace, holder.name, holder.uid, secret)
        return jwt.encode(claims, self._key, ALGORITHM, {"kid": self._key_id})

    def verify(self, token: str, reader: Reader, now_s: int, audiences: Sequence[str] = DEFAULT_AUDIENCES) -> Verified:
        claims = self._signed_claims(token)
        # A token without an audience is for this server.
        said = DEFAULT_AUDIENCES if isinstance(claims, LegacyClaims) else claims.aud
        common = tuple(one for one in said if one in audiences)
        if not common:
            words = f"token audiences {quoted(said)} is invalid for the target audiences {quoted(audiences)}"
            raise TokenError(words)
        if isinstance(claims, LegacyClaims):
            return Verified(self._legacy_actor(claims, token, reader), common)
        if now_s > claims.exp + _LEEWAY_S:
            raise TokenError("service account token has expired")
        if now_s < claims.nbf - _LEEWAY_S:
            raise TokenError("service account token is not valid yet")
        own = claims.own
        holder = TokenSubject(own.namespace, own.serviceaccount.name, own.serviceaccount.uid)
        _check_holder(holder, reader)
        if own.pod is not None:
            _check_bound("pods", own.namespace, own.pod, reader)
        elif own.node is not None:
            _check_bound("nodes", "", own.node, reader)
        if own.secret is not None:
            _check_bound("secrets", own.namespace, own.secret, reader)
        return Verified(service_account_actor(holder, _reported(claims)), common)

    def _legacy_actor(self, claims: LegacyClaims, token: str, reader: Reader) -> Actor:
        is_good = check_legacy(claims, token, reader)
        self._used(claims.namespace, claims.secret)
        if not is_good:
            raise taken_back(claims)
        return service_account_actor(TokenSubject(claims.namespace, claims.account, claims.uid))

    def _signed_claims(self, token: str) -> _Claims | LegacyClaims:
        found = self._claims.get(token)
        if found is not None:
            return found
        try:
            decoded = jwt.decode(
                token,
                self._public,
                algorithms=[ALGORITHM],
                options={"verify_aud": False, "verify_exp": False, "verify_nbf": False, "verify_iat": False},
            )
            issuer = decoded.get("iss")
            if issuer not in (ISSUER, LEGACY_ISSUER):
                raise TokenError(INVALID_TOKEN)
            form: type[_Claims | LegacyClaims] = LegacyClaims if issuer == LEGACY_ISSUER else _Claims
            claims: _Claims | LegacyClaims = msgspec.convert(decoded, form)
        except (jwt.PyJWTError, msgspec.ValidationError, ValueError):
            raise TokenError(INVALID_TOKEN) from None
        if len(self._claims) >= self._KEPT:
            self._claims.clear()
        self._claims[token] = claims
        return claims


def key_id(public: ec.EllipticCurvePublicKey) -> str:
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()[:40]


def service_account_actor(holder: TokenSubject, extra: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> Actor:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{holder.namespace}", "system:authenticated")
    return Actor(holder.user, groups, holder.uid, extra)


def _check_holder(holder: TokenSubject, reader: Reader) -> None:
    account = reader.get("", "serviceaccounts", holder.namespace, holder.name)
    if account is None:
        raise TokenError(f'serviceaccounts "{holder.name}" not found')
    if account["metadata"].get("uid") != holder.uid:
        raise TokenError(f"service account UID ({account['metadata'].get('uid')}) does not match claim ({holder.uid})")


def _check_bound(plural: str, namespace: str, named: _Named, reader: Reader) -> None:
    found = reader.get("", plural, namespace, named.name)
    if found is None or found["metadata"].get("uid") != named.uid:
        raise TokenError("service account token has been invalidated")


def _reported(claims: _Claims) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What a token says besides who holds it, as extra values of the user."""
    reported = {"credential-id": f"JTI={claims.jti}"}
    for kind, named in (("node", claims.own.node), ("pod", claims.own.pod)):
        if named is not None:
            reported |= {f"{kind}-name": named.name, f"{kind}-uid": named.uid}
    return tuple((_PREFIX + key, (value,)) for key, value in reported.items())
