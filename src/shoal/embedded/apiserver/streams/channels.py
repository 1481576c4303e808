"""Encodes the output of a command as WebSocket frames: v5.channel.k8s.io and v4.channel.k8s.io.

Every frame's first byte names a channel: 0 the input, 1 and 2 what is printed, 3 how it ended, 4 the terminal's size;
in v5 the client closes channel n by sending the bytes 255, n.

A message is bounded in both directions, and compression is never agreed on: a small compressed message can represent
gigabytes. A page of another site cannot open a conversation in the name of the user of a browser.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import WSMsgType, web

from shoal.embedded.apiserver.status import bad_request, forbidden
from shoal.embedded.apiserver.streams.sending import cut_off_if_stalled
from shoal.embedded.apiserver.streams.terminal import CommandOutput

Obj = dict[str, Any]
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDOUT, _STDERR, _OUTCOME = b"\x01", b"\x02", b"\x03"
LARGEST_MESSAGE = 1 << 20
"""Bytes of one message; clients send and receive pieces of some 32 KiB."""
_FRAME_BYTES = 32 * 1024
_INPUT_ENDED = b"\xff\x00"
_PATIENCE_S = 0.2
"""How long a client that was silent may take to send more input before its command ends all the same."""


class RequestedChannels(msgspec.Struct, frozen=True):
    """Which channels a client asked for."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


def check_upgrade(request: web.BaseRequest, protocols: Sequence[str] = PROTOCOLS) -> None:
    if not web.WebSocketResponse(protocols=protocols).can_prepare(request):
        raise bad_request("Upgrade request required")


def check_origin(request: web.BaseRequest, names: Collection[str]) -> None:
    """Refuse a browser's upgrade from a page of another host than this one; `names` are those of this server.

    Programs send no Origin, or that of the server. A name that a foreign DNS server leads to this machine is not
    this server's, though the Host header agrees with it.
    """
    if "Upgrade" not in request.headers:
        return
    for origin in request.headers.getall("Origin", []):
        if not _is_own_origin(origin, request.headers.get("Host", ""), names):
            raise forbidden("", "", "", "the Origin of the request is not this server")


def _is_own_origin(origin: str, host: str, names: Collection[str]) -> bool:
    try:
        said, here = urlsplit(origin), urlsplit(f"//{host}")
        name = said.hostname or ""
        if not name or (name, said.port) != (here.hostname, here.port):
            return False
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in names
    return True


def new_socket(protocols: Sequence[str] = PROTOCOLS) -> web.WebSocketResponse:
    return web.WebSocketResponse(protocols=protocols, max_msg_size=LARGEST_MESSAGE, compress=False)


async def say(request: web.BaseRequest, answer: CommandOutput, wanted: RequestedChannels) -> web.WebSocketResponse:
    """The whole conversation about a command that has been run."""
    check_upgrade(request)
    socket = new_socket()
    await socket.prepare(request)
    with cut_off_if_stalled(request.transport):
        await _print(socket, answer, wanted)
    if wanted.stdin and not wanted.tty:
        await _swallow_input(socket)
    await socket.send_bytes(_OUTCOME + msgspec.json.encode(outcome(answer.code)))
    await socket.close()
    return socket


async def _print(socket: web.WebSocketResponse, answer: CommandOutput, wanted: RequestedChannels) -> None:
    printed = [(_STDOUT, answer.stdout, wanted.stdout)]
    if wanted.tty:
        # A terminal has one screen, and lines on it end with a return.
        screen = (answer.stdout + answer.stderr).replace("\n", "\r\n")
        printed = [(_STDOUT, screen, wanted.stdout)]
    else:
        printed.append((_STDERR, answer.stderr, wanted.stderr))
    for channel, text, is_wanted in printed:
        content = text.encode()
        for start in range(0, len(content) if is_wanted else 0, _FRAME_BYTES):
            await socket.send_bytes(channel + content[start : start + _FRAME_BYTES])


async def _swallow_input(socket: web.WebSocketResponse) -> None:
    """Until the client has said all: kubectl, cut off while it sends, prints an error."""
    with suppress(TimeoutError):
        while True:
            async with asyncio.timeout(_PATIENCE_S):
                message = await socket.receive()
            if message.type is not WSMsgType.BINARY or message.data == _INPUT_ENDED:
                return


def outcome(code: int) -> Obj:
    """The last thing said: that the command ended well, or with which exit code."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
