"""`exec` as clients speak it: frames on channels, the outcome last, and refusals before the connection is upgraded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession, WSMsgType, web
from aiohttp.test_utils import TestServer, make_mocked_request
from multidict import CIMultiDict

from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.streams.channels import LARGEST_MESSAGE, PROTOCOLS, check_origin, outcome
from shoal.embedded.apiserver.streams.exec_pod import exec_pod, refused_stream
from shoal.embedded.apiserver.streams.terminal import CommandOutput, CommandPlace

Obj = dict[str, Any]
POD: Obj = {
    "metadata": {"name": "p", "namespace": "ns"},
    "spec": {"nodeName": "n1", "containers": [{"name": "main"}, {"name": "side"}]},
    "status": {"phase": "Running"},
}


LONG = "ä" * 50_000


class Echo:
    """Says what it was asked, or nothing but its code when that is a number."""

    def run(self, place: CommandPlace, command: Sequence[str]) -> CommandOutput:
        if command[0].isdecimal():
            return CommandOutput("out\n", "err\n", int(command[0]))
        if command[0] == "long":
            return CommandOutput(LONG)
        return CommandOutput(f"{place.container['name']}: {' '.join(command)}\n")


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await exec_pod(request, POD, None, Echo())
        except ApiError as error:
            return web.Response(status=error.code, body=msgspec.json.encode(error.status()))

    app = web.Application()
    app.router.add_route("*", "/exec", handle)
    async with TestServer(app) as server:
        yield str(server.make_url("/exec"))


async def talk(url: str, query: str, protocol: str = "v5.channel.k8s.io") -> tuple[str | None, list[tuple[int, bytes]]]:
    async with ClientSession() as session, session.ws_connect(f"{url}?{query}", protocols=(protocol,)) as socket:
        frames = [(one.data[0], bytes(one.data[1:])) async for one in socket if one.type is WSMsgType.BINARY]
        assert socket.close_code == 1000
        return socket.protocol, frames


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_output_comes_on_its_channel_and_the_outcome_last(url: str, protocol: str) -> None:
    spoken, frames = await talk(url, "command=echo&command=a+b&container=side&stdout=true&stderr=true", protocol)
    assert spoken == protocol
    assert frames == [(1, b"side: echo a b\n"), (3, b'{"metadata":{},"status":"Success"}')]


async def test_an_exit_code_is_a_cause_of_the_outcome(url: str) -> None:
    _, frames = await talk(url, "command=7&container=main&stdout=1&stderr=1")
    assert frames[:2] == [(1, b"out\n"), (2, b"err\n")]
    assert msgspec.json.decode(frames[2][1]) == outcome(7)
    assert outcome(7)["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]


async def test_a_terminal_has_one_screen_and_what_is_not_wanted_is_not_sent(url: str) -> None:
    _, frames = await talk(url, "command=7&container=main&stdin=true&stdout=true&tty=true")
    assert frames[0] == (1, b"out\r\nerr\r\n")
    _, frames = await talk(url, "command=7&container=main&stderr=true")
    assert [channel for channel, _ in frames] == [2, 3]


async def test_compression_is_not_agreed_on(url: str) -> None:
    query = f"{url}?command=echo&container=main&stdout=true"
    async with ClientSession() as session, session.ws_connect(query, protocols=PROTOCOLS, compress=15) as socket:
        assert socket.compress == 0


async def test_a_message_beyond_the_bound_ends_the_conversation(url: str) -> None:
    query = f"{url}?command=echo&container=main&stdin=true&stdout=true"
    async with ClientSession() as session, session.ws_connect(query, protocols=PROTOCOLS) as socket:
        await socket.send_bytes(b"\0" * (LARGEST_MESSAGE + 1))
        said = [one async for one in socket]
        assert [one.data[0] for one in said if one.type is WSMsgType.BINARY] == [1]
        assert socket.close_code == 1009


def upgrade(host: str, *origins: str) -> web.BaseRequest:
    headers = CIMultiDict([("Host", host), ("Upgrade", "websocket"), *(("Origin", one) for one in origins)])
    return make_mocked_request("GET", "/exec", headers=headers)


@pytest.mark.parametrize(
    ("host", "origins"),
    [
        ("127.0.0.1:6443", ()),
        ("127.0.0.1:6443", ("https://127.0.0.1:6443",)),
        ("10.0.0.7:6443", ("http://10.0.0.7:6443",)),
        ("[::1]:6443", ("https://[::1]:6443",)),
        ("LocalHost:6443", ("https://localhost:6443",)),
    ],
)
def test_a_program_or_a_page_of_the_server_itself_may_upgrade(host: str, origins: tuple[str, ...]) -> None:
    check_origin(upgrade(host, *origins), {"localhost"})
    with pytest.raises(ApiError) as refused:
        check_origin(upgrade(host, *origins, "https://evil.example"), {"localhost"})
    assert refused.value.code == 403


@pytest.mark.parametrize(
    ("host", "origins"),
    [
        ("127.0.0.1:6443", ("https://evil.example",)),
        ("127.0.0.1:6443", ("https://127.0.0.1:8080",)),
        ("127.0.0.1:6443", ("null",)),
        ("127.0.0.1:6443", ("https://127.0.0.1:6443", "https://evil.example")),
        ("127.0.0.1:6443", ("https://127.0.0.1:x",)),
        ("evil.example", ("https://evil.example",)),
    ],
)
def test_a_page_of_another_host_may_not_upgrade(host: str, origins: tuple[str, ...]) -> None:
    with pytest.raises(ApiError) as refused:
        check_origin(upgrade(host, *origins), {"localhost"})
    assert refused.value.code == 403


async def test_long_output_comes_in_pieces_and_whole(url: str) -> None:
    _, frames = await talk(url, "command=long&container=main&stdout=true")
    printed = [content for channel, content in frames if channel == 1]
    assert b"".join(printed) == LONG.encode()
    assert max(map(len, printed)) <= 32 * 1024


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("command=env&container=zz&stdout=true", "container zz is not valid for pod p"),
        ("command=env&stdout=true", "a container name must be specified for pod p, choose one of: [main side]"),
        ("container=main&stdout=true", "you must specify at least one command for the container"),
        ("command=env&container=main", "you must specify at least one of stdin, stdout, stderr"),
        ("command=env&container=main&stdout=true", "Upgrade request required"),
    ],
)
async def test_what_is_wrong_is_said_before_anything_is_upgraded(url: str, query: str, message: str) -> None:
    async with ClientSession() as session, session.post(f"{url}?{query}") as answer:
        assert answer.status == 400
        assert msgspec.json.decode(await answer.read())["message"] == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spec": {"containers": [{"name": "main"}]}}, "pod p does not have a host assigned"),
        (
            {"status": {"phase": "Succeeded"}},
            "cannot exec into a container in a completed pod; current phase is Succeeded",
        ),
    ],
)
async def test_a_pod_that_is_not_up_takes_no_command(change: Obj, message: str) -> None:
    request = make_mocked_request("GET", "/exec?command=env&stdout=true")
    with pytest.raises(ApiError) as caught:
        await exec_pod(request, {**POD, **change}, None, Echo())
    assert caught.value.message == message


def test_other_streams_are_refused_in_one_line() -> None:
    error = refused_stream("attach")
    assert (error.code, error.reason) == (400, "BadRequest")
    assert "\n" not in error.message


async def test_input_is_taken_to_its_end_before_the_command_ends(url: str) -> None:
    query = "command=7&container=main&stdin=true&stdout=true&stderr=true"
    async with (
        ClientSession() as session,
        session.ws_connect(f"{url}?{query}", protocols=("v5.channel.k8s.io",)) as socket,
    ):
        assert [await socket.receive_bytes() for _ in range(2)] == [b"\x01out\n", b"\x02err\n"]
        for _ in range(100):
            await socket.send_bytes(b"\x00" + b"x" * 10_000)
        await socket.send_bytes(b"\xff\x00")
        assert (await socket.receive_bytes())[:1] == b"\x03"
