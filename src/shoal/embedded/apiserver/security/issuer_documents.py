"""Serves the issuer documents with which others verify service account tokens: the issuer's name and its public key."""

from __future__ import annotations

import base64
from typing import Any

from shoal.client.certificates import parse_key
from shoal.embedded.apiserver.security.service_accounts import ALGORITHM, ISSUER, key_id

Obj = dict[str, Any]
KEYS_PATH = "/openid/v1/jwks"
CONFIGURATION_PATH = "/.well-known/openid-configuration"
_COORDINATE_BYTES = 32


def configuration(server_url: str) -> Obj:
    return {
        "issuer": ISSUER,
        "jwks_uri": f"{server_url}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }


def key_set(signing_key: bytes) -> Obj:
    public = parse_key(signing_key).public_key()
    numbers = public.public_numbers()
    key = {"use": "sig", "kty": "EC", "kid": key_id(public), "crv": "P-256", "alg": ALGORITHM}
    return {"keys": [{**key, "x": _base64(numbers.x), "y": _base64(numbers.y)}]}


def _base64(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(_COORDINATE_BYTES, "big")).rstrip(b"=").decode()
