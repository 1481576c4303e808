"""Requests the tokens of a pod's service account, and new ones before they expire.

As the kubelet does, after four fifths of their life, and at least once a day.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.agent.kubelet.volumes import TokenKind, Tokens, tokens_of
from shoal.client.clock import Clock
from shoal.client.kind import SERVICE_ACCOUNTS
from shoal.client.kubelet.times import read
from shoal.client.port import Api

Obj = dict[str, Any]
_DAY_S, _USED = 24 * 3600.0, 0.8


class _Token(msgspec.Struct, frozen=True):
    text: str
    until_s: float
    """When it is replaced."""


class PodTokens:
    def __init__(self, api: Api, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._tokens: dict[TokenKind, _Token] = {}

    async def of(self, pod: Obj) -> Tokens:
        """Raises TemporaryError and RefusedError."""
        found = {}
        for kind in tokens_of(pod):
            token = self._tokens.get(kind)
            if token is None or self._clock.seconds() >= token.until_s:
                token = self._tokens[kind] = await self._requested(pod, *kind)
            found[kind] = token.text
        return found

    async def _requested(self, pod: Obj, audience: str, life_s: int) -> _Token:
        metadata, account = pod["metadata"], pod["spec"].get("serviceAccountName") or "default"
        bound = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        wanted: Obj = {"expirationSeconds": life_s, "boundObjectRef": bound}
        if audience:
            wanted["audiences"] = [audience]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": wanted}
        now_s = self._clock.seconds()
        said = (await self._api.post(SERVICE_ACCOUNTS, metadata["namespace"], account, "token", body))["status"]
        expires_s = read(said.get("expirationTimestamp")) or now_s + life_s
        return _Token(said["token"], now_s + min(_USED * (expires_s - now_s), _DAY_S))
