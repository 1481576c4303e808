"""Signs viewers in with a token of their Kubernetes account, and asks the cluster what each may see.

The token is sent to the API server as the viewer's own (SelfSubjectAccessReview), so the server needs no permission for
it, and a token that the cluster rejects opens nothing. Guarantees: a browser has the number of a session and never the
token; a right that was withdrawn is gone after a minute; a session ends after 12 hours.

Rejected: TokenReview and SubjectAccessReview. They need permissions that let the server ask about every user.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Collection

import msgspec

from shoal.client.clock import Clock
from shoal.client.kind import Kind
from shoal.client.port import Api
from shoal.client.refusals import ForbiddenError, UnauthorizedError
from shoal.web.viewer import EVENTS_OF_NODES, Viewer

_REVIEWS = Kind(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", is_namespaced=False
)
_VALID_S, _SESSION_S = 60.0, 12 * 3_600.0
_MOST_VIEWERS, _MOST_SESSIONS, _AT_ONCE = 64, 1_000, 8
_NODES, _QUEUES = ("", "nodes"), ("kueue.x-k8s.io", "clusterqueues")
_PODS, _EVENTS, _WORKLOADS = ("", "pods"), ("", "events"), ("kueue.x-k8s.io", "workloads")


class _SignedIn(msgspec.Struct):
    api: Api
    checked_s: float
    rights: dict[tuple[str, str, str], bool]
    """Group, resource and namespace -> whether it may be listed."""
    requests: int = 0
    """How many use the client at present."""


class TokenViewers:
    """Implements `Viewers` with the API server. Close it."""

    def __init__(self, api_of: Callable[[str], Api], clock: Clock) -> None:
        """`api_of`: a client whose requests carry the token and nothing else that identifies a user."""
        self._api_of, self._clock = api_of, clock
        self._known: OrderedDict[str, _SignedIn] = OrderedDict()

    async def viewer(self, token: str, namespaces: Collection[str]) -> Viewer:
        known = await self._of(token)
        known.requests += 1
        try:
            return await self._reviewed(known, token, namespaces)
        finally:
            known.requests -= 1

    async def _reviewed(self, known: _SignedIn, token: str, namespaces: Collection[str]) -> Viewer:
        turns = asyncio.Semaphore(_AT_ONCE)

        async def may(resource: tuple[str, str], namespace: str = "") -> bool:
            key = (*resource, namespace)
            if key not in known.rights:
                async with turns:
                    known.rights[key] = await _may_list(known.api, *key)
            return known.rights[key]

        # The first one alone: a rejected token is rejected once.
        try:
            sees_all = await may(_PODS)
        except UnauthorizedError:
            await self._forget(token)
            raise
        lists_nodes, lists_queues = await asyncio.gather(may(_NODES), may(_QUEUES))

        async def those(resource: tuple[str, str], names: Collection[str]) -> frozenset[str]:
            found = await asyncio.gather(*(may(resource, name) for name in names))
            return frozenset(name for name, is_seen in zip(names, found, strict=True) if is_seen)

        async def those_or_all(resource: tuple[str, str], names: Collection[str]) -> frozenset[str] | None:
            return None if await may(resource) else await those(resource, names)

        named = sorted(namespaces)
        pods = None if sees_all else await those(_PODS, named)
        seen = named if pods is None else sorted(pods)
        events, workloads = await asyncio.gather(
            those_or_all(_EVENTS, sorted({*seen, EVENTS_OF_NODES})), those_or_all(_WORKLOADS, seen)
        )
        return Viewer(pods, lists_nodes, lists_queues, events, workloads)

    async def close(self) -> None:
        for known in self._known.values():
            await known.api.close()
        self._known.clear()

    async def _forget(self, token: str) -> None:
        """A rejected token keeps no connection, and no place of a viewer."""
        known = self._known.pop(_key(token), None)
        if known is not None:
            await known.api.close()

    async def _of(self, token: str) -> _SignedIn:
        key = _key(token)
        now = self._clock.seconds()
        known = self._known.get(key)
        if known is None:
            return await self._accepted(key, _SignedIn(self._api_of(token), now, {}))
        if now - known.checked_s >= _VALID_S:
            known.rights, known.checked_s = {}, now
        self._known.move_to_end(key)
        return known

    async def _accepted(self, key: str, fresh: _SignedIn) -> _SignedIn:
        """The viewer gets a place once the cluster has accepted the token: guesses take the place of none."""
        try:
            fresh.rights[(*_PODS, "")] = await _may_list(fresh.api, *_PODS, "")
        except BaseException:
            await fresh.api.close()
            raise
        known = self._known.setdefault(key, fresh)
        if known is not fresh:
            # Another request of the same viewer was earlier.
            await fresh.api.close()
            return known
        idle = [one for one, viewer in self._known.items() if not viewer.requests and viewer is not fresh]
        ended = [self._known.pop(one) for one in idle[: max(0, len(self._known) - _MOST_VIEWERS)]]
        for one in ended:
            await one.api.close()
        return fresh


def _key(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


async def _may_list(api: Api, group: str, resource: str, namespace: str) -> bool:
    asked = {"group": group, "resource": resource, "verb": "list"} | ({"namespace": namespace} if namespace else {})
    try:
        found = await api.post(_REVIEWS, "", "", "", {"spec": {"resourceAttributes": asked}})
    except ForbiddenError:
        return False
    return bool((found.get("status") or {}).get("allowed"))


class Sessions:
    """Tokens by the number of the session, which only the browser has."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tokens: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def begin(self, token: str) -> str:
        number = secrets.token_urlsafe(32)
        self._tokens[number] = token, self._clock.seconds() + _SESSION_S
        while len(self._tokens) > _MOST_SESSIONS:
            self._tokens.popitem(last=False)
        return number

    def token(self, number: str) -> str:
        """Empty for a session that does not exist or has ended."""
        token, until_s = self._tokens.get(number, ("", 0.0))
        if self._clock.seconds() < until_s:
            return token
        self._tokens.pop(number, None)
        return ""

    def end(self, number: str) -> None:
        self._tokens.pop(number, None)
