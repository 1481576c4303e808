"""Limits what each user may keep open: watches, streams, request bodies and large responses that are not read.

A response that is not read keeps its body in memory until it is cut off, and a body is held from its first byte until
its request is answered, also while the request waits for a seat. Without a bound, one user could fill the memory of the
server. Exempt are requests that flow control exempts and the components of Kubernetes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.status import too_many_requests

_RETRY_S = 5
_COMPONENTS = "system:kube-"


class Most(msgspec.Struct, frozen=True):
    """Of one user, at once."""

    watches: int = 1000
    responses: int = 256
    response_bytes: int = 512 << 20
    request_bytes: int = 64 << 20
    conversations: int = 512
    """exec, attach, log and proxies: each holds a connection to a kubelet as well."""


_MOST = Most()


class OpenResponses:
    """Counted are responses of 64 KiB and more: what is smaller goes into the buffers of the connection at once."""

    def __init__(self, most: Most = _MOST) -> None:
        self._most = most
        self._watches: Counter[str] = Counter()
        self._responses: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._request_bytes: Counter[str] = Counter()
        self._conversations: Counter[str] = Counter()

    def check(self, actor: Actor, *, is_watch: bool) -> None:
        """429 if the user keeps as much open as it may."""
        user, most = actor.name, self._most
        if not _is_bounded(actor):
            return
        if is_watch:
            if self._watches[user] >= most.watches:
                raise too_many_requests(f"the user has {most.watches} watches open, the most allowed", _RETRY_S)
        elif self._responses[user] >= most.responses or self._bytes[user] >= most.response_bytes:
            raise too_many_requests("the user has not read the responses to earlier requests", _RETRY_S)

    def enter_watch(self, user: str) -> None:
        self._watches[user] += 1

    def leave_watch(self, user: str) -> None:
        _subtract(self._watches, user, 1)

    def enter_response(self, user: str, size: int) -> None:
        self._responses[user] += 1
        self._bytes[user] += size

    def leave_response(self, user: str, size: int) -> None:
        _subtract(self._responses, user, 1)
        _subtract(self._bytes, user, size)

    @contextmanager
    def request(self, actor: Actor, size: int) -> Iterator[None]:
        """While a body of up to so many bytes is received and held."""
        if self._request_bytes[actor.name] + size > self._most.request_bytes and _is_bounded(actor):
            raise too_many_requests(
                "the bodies of the user's requests take the memory that one user may have", _RETRY_S
            )
        self._request_bytes[actor.name] += size
        try:
            yield
        finally:
            _subtract(self._request_bytes, actor.name, size)

    @contextmanager
    def conversation(self, actor: Actor) -> Iterator[None]:
        most = self._most.conversations
        if self._conversations[actor.name] >= most and _is_bounded(actor):
            words = f"the user has {most} streams to containers and nodes open, the most allowed"
            raise too_many_requests(words, _RETRY_S)
        self._conversations[actor.name] += 1
        try:
            yield
        finally:
            _subtract(self._conversations, actor.name, 1)


def _is_bounded(actor: Actor) -> bool:
    return not actor.name.startswith(_COMPONENTS)


def _subtract(counts: Counter[str], user: str, number: int) -> None:
    """Users that have nothing open are forgotten."""
    counts[user] -= number
    if not counts[user]:
        del counts[user]
