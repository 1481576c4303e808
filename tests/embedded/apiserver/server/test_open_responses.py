"""What one user may keep open is bounded, and what is refused is counted for no other user."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.server.open_responses import Most, OpenResponses
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.streams.sending import send

_ALICE, _BOB = Actor("alice"), Actor("bob")


def test_watches_beyond_the_bound_are_refused_until_one_ends() -> None:
    open_ = OpenResponses(Most(watches=2))
    for _ in range(2):
        open_.check(_ALICE, is_watch=True)
        open_.enter_watch("alice")
    with pytest.raises(ApiError) as refused:
        open_.check(_ALICE, is_watch=True)
    assert refused.value.code == 429
    assert refused.value.headers["Retry-After"]
    open_.check(_ALICE, is_watch=False)
    open_.check(_BOB, is_watch=True)
    open_.leave_watch("alice")
    open_.check(_ALICE, is_watch=True)


@pytest.mark.parametrize("most", [Most(responses=2), Most(response_bytes=2000)])
def test_requests_beyond_the_unread_responses_are_refused_until_one_is_read(most: Most) -> None:
    open_ = OpenResponses(most)
    for _ in range(2):
        open_.check(_ALICE, is_watch=False)
        open_.enter_response("alice", 1000)
    with pytest.raises(ApiError) as refused:
        open_.check(_ALICE, is_watch=False)
    assert refused.value.code == 429
    open_.check(_BOB, is_watch=False)
    open_.leave_response("alice", 1000)
    open_.check(_ALICE, is_watch=False)


def test_components_of_kubernetes_are_not_bounded() -> None:
    open_ = OpenResponses(Most(watches=0, responses=0))
    open_.check(Actor("system:kube-controller-manager"), is_watch=True)
    with pytest.raises(ApiError):
        open_.check(Actor("system:serviceaccount:kube-system:x"), is_watch=True)


def test_bodies_of_one_user_are_bounded_while_they_are_held() -> None:
    open_ = OpenResponses(Most(request_bytes=3000))
    with open_.request(_ALICE, 2000):
        with pytest.raises(ApiError) as refused, open_.request(_ALICE, 2000):
            pass
        assert refused.value.code == 429
        with open_.request(_ALICE, 1000), open_.request(_BOB, 3000):
            pass
    with open_.request(_ALICE, 3000):
        pass


def test_streams_to_containers_are_bounded_while_they_are_open() -> None:
    open_ = OpenResponses(Most(conversations=1))
    with open_.conversation(_ALICE):
        with pytest.raises(ApiError) as refused, open_.conversation(_ALICE):
            pass
        assert refused.value.code == 429
        with open_.conversation(_BOB):
            pass
    with open_.conversation(_ALICE):
        pass


class _Unread(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.aborted = asyncio.Event()

    def abort(self) -> None:
        self.aborted.set()


class _Stalled:
    """A response whose client accepts so many pieces and then none until its connection ends."""

    def __init__(self, transport: _Unread, accepted: int) -> None:
        self.transport = transport
        self.accepted = accepted
        self.sizes: list[int] = []

    async def write(self, data: memoryview) -> None:
        self.sizes.append(len(data))
        if len(self.sizes) > self.accepted:
            await self.transport.aborted.wait()
            raise ConnectionResetError


def _request(transport: _Unread) -> web.BaseRequest:
    return make_mocked_request("GET", "/", transport=transport)


async def test_a_watch_whose_client_accepts_nothing_is_cut_off() -> None:
    transport = _Unread()
    response = _Stalled(transport, accepted=2)
    with pytest.raises(ConnectionResetError):
        await send(_request(transport), cast("web.StreamResponse", response), b"x" * 1_000_000, stalled_s=0.01)
    assert len(response.sizes) == 3
    assert max(response.sizes) <= 64 * 1024


async def test_a_watch_whose_client_reads_is_sent_everything() -> None:
    transport = _Unread()
    response = _Stalled(transport, accepted=100)
    await send(_request(transport), cast("web.StreamResponse", response), b"x" * 1_000_000)
    assert sum(response.sizes) == 1_000_000
    assert not transport.aborted.is_set()
