"""Service account tokens that are kept in Secrets: signed once, without an audience and without an end.

Kubernetes' token controller writes them into Secrets of the type kubernetes.io/service-account-token. One is good for
as long as its Secret is there and holds this very token, and the service account has the uid it names. The label
`kubernetes.io/legacy-token-invalid-since` on the Secret takes it back.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.embedded.apiserver.reading import Reader

LEGACY_ISSUER = "kubernetes/serviceaccount"
LAST_USED = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
_PREFIX = "kubernetes.io/serviceaccount/"
_USER = "system:serviceaccount:"


class TokenError(Exception):
    """Why a token is not accepted, in the words a TokenReview shows."""


class LegacyClaims(msgspec.Struct, frozen=True):
    sub: str
    namespace: str = msgspec.field(name=f"{_PREFIX}namespace", default="")
    secret: str = msgspec.field(name=f"{_PREFIX}secret.name", default="")
    account: str = msgspec.field(name=f"{_PREFIX}service-account.name", default="")
    uid: str = msgspec.field(name=f"{_PREFIX}service-account.uid", default="")


def legacy_claims(namespace: str, account: str, uid: str, secret: str) -> dict[str, Any]:
    claims = LegacyClaims(f"{_USER}{namespace}:{account}", namespace, secret, account, uid)
    found: dict[str, Any] = msgspec.to_builtins(claims)
    return {"iss": LEGACY_ISSUER, **found}


def check_legacy(claims: LegacyClaims, token: str, reader: Reader) -> bool:
    """Raises TokenError for a token that is not good. False if its Secret's label has taken it back."""
    for name, value in (
        ("namespace", claims.namespace),
        ("secretName", claims.secret),
        ("serviceAccountName", claims.account),
        ("serviceAccountUID", claims.uid),
    ):
        if not value:
            raise TokenError(f"{name} claim is missing")
    if claims.sub != f"{_USER}{claims.namespace}:{claims.account}":
        raise TokenError("sub claim is invalid")
    secret = reader.get("", "secrets", claims.namespace, claims.secret)
    if secret is None or secret["metadata"].get("deletionTimestamp"):
        raise TokenError("Token has been invalidated")
    if not hmac.compare_digest(_held(secret), token.encode(errors="surrogatepass")):
        raise TokenError("Token does not match server's copy")
    account = reader.get("", "serviceaccounts", claims.namespace, claims.account)
    if account is None:
        raise TokenError(f'serviceaccounts "{claims.account}" not found')
    if account["metadata"].get("deletionTimestamp"):
        raise TokenError(f"ServiceAccount {claims.namespace}/{claims.account} has been deleted")
    if account["metadata"].get("uid") != claims.uid:
        uid = account["metadata"].get("uid")
        raise TokenError(f"ServiceAccount UID ({uid}) does not match claim ({claims.uid})")
    return not (secret["metadata"].get("labels") or {}).get(INVALID_SINCE)


def taken_back(claims: LegacyClaims) -> TokenError:
    return TokenError(
        f"the token in secret {claims.namespace}/{claims.secret} for service account "
        f"{claims.namespace}/{claims.account} has been marked invalid. Use tokens from the TokenRequest API or "
        f"manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily "
        "allow use of this token"
    )


def with_last_used(secret: dict[str, Any], now_s: int) -> dict[str, Any] | None:
    """The Secret with the day in its label; None where the label says it already, by this clock or one ahead of it."""
    now = datetime.fromtimestamp(now_s, UTC)
    today, tomorrow = now.strftime("%Y-%m-%d"), (now + timedelta(days=1)).strftime("%Y-%m-%d")
    labels = secret["metadata"].get("labels") or {}
    if labels.get(LAST_USED) in (today, tomorrow):
        return None
    return {**secret, "metadata": {**secret["metadata"], "labels": {**labels, LAST_USED: today}}}


def _held(secret: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode((secret.get("data") or {}).get("token") or "")
    except binascii.Error:
        return b""
