"""What a command had to say, as frames of a WebSocket: v5.channel.k8s.io and v4.channel.k8s.io.

Every frame's first byte names a channel: 0 the input, 1 and 2 what is printed, 3 how it ended, 4 the terminal's size;
in v5 the client closes channel n by sending the bytes 255, n.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from shoal.cluster.status import bad_request
from shoal.cluster.streams.terminal import Answer

Obj = dict[str, Any]
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDOUT, _STDERR, _OUTCOME = b"\x01", b"\x02", b"\x03"
_FRAME_BYTES = 32 * 1024
_INPUT_ENDED = b"\xff\x00"
_PATIENCE_S = 0.2
"""How long a client that was silent may take to send more input before its command ends all the same."""


class Wanted(msgspec.Struct, frozen=True):
    """Which channels a client asked for."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


def check_upgrade(request: web.BaseRequest) -> None:
    if not web.WebSocketResponse(protocols=PROTOCOLS).can_prepare(request):
        raise bad_request("Upgrade request required")


async def say(request: web.BaseRequest, answer: Answer, wanted: Wanted) -> web.WebSocketResponse:
    """The whole conversation about a command that has been run."""
    check_upgrade(request)
    socket = web.WebSocketResponse(protocols=PROTOCOLS, max_msg_size=0)
    await socket.prepare(request)
    await _print(socket, answer, wanted)
    if wanted.stdin and not wanted.tty:
        await _swallow_input(socket)
    await socket.send_bytes(_OUTCOME + msgspec.json.encode(outcome(answer.code)))
    await socket.close()
    return socket


async def _print(socket: web.WebSocketResponse, answer: Answer, wanted: Wanted) -> None:
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
    """Until the client has said all: kubectl, cut off while it sends, says so in a line nobody asked for."""
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
