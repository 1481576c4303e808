"""`exec` over WebSocket, as kubectl and the other clients speak it: v5.channel.k8s.io and v4.channel.k8s.io.

Every frame's first byte names a channel: 0 the input, 1 and 2 what is printed, 3 how it ended, 4 the terminal's size;
in v5 the client closes channel n by sending the bytes 255, n. What is wrong with the request is said before the
connection is upgraded, as an ordinary answer.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from shoal.cluster.status import ApiError, bad_request
from shoal.cluster.streams.containers import chosen_container
from shoal.cluster.streams.terminal import Answer, Place, Terminal

Obj = dict[str, Any]
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDOUT, _STDERR, _OUTCOME = b"\x01", b"\x02", b"\x03"
_ENDED = ("Succeeded", "Failed")
_FRAME_BYTES = 32 * 1024
_TRUE = ("1", "t", "true")
_INPUT_ENDED = b"\xff\x00"
_PATIENCE_S = 0.2
"""How long a client that was silent may take to send more input before its command ends all the same."""


async def exec_pod(request: web.BaseRequest, pod: Obj, node: Obj | None, terminal: Terminal) -> web.StreamResponse:
    """Answer one exec request on a pod; `node` is the one it is bound to."""
    query = request.query
    place = Place(pod, _container(pod, query.get("container", "")), node)
    command = query.getall("command", [])
    if not command:
        raise bad_request("you must specify at least one command for the container")
    wants = {one: query.get(one, "").lower() in _TRUE for one in ("stdin", "stdout", "stderr", "tty")}
    if not any(wants[one] for one in ("stdin", "stdout", "stderr")):
        raise bad_request("you must specify at least one of stdin, stdout, stderr")
    answer = terminal.run(place, command)
    socket = web.WebSocketResponse(protocols=PROTOCOLS, max_msg_size=0)
    if not socket.can_prepare(request):
        raise bad_request("Upgrade request required")
    await socket.prepare(request)
    await _print(socket, answer, wants)
    if wants["stdin"] and not wants["tty"]:
        await _swallow_input(socket)
    await socket.send_bytes(_OUTCOME + msgspec.json.encode(outcome(answer.code)))
    await socket.close()
    return socket


async def _print(socket: web.WebSocketResponse, answer: Answer, wants: dict[str, bool]) -> None:
    printed = [(_STDOUT, answer.stdout, wants["stdout"])]
    if wants["tty"]:
        # A terminal has one screen, and lines on it end with a return.
        screen = (answer.stdout + answer.stderr).replace("\n", "\r\n")
        printed = [(_STDOUT, screen, wants["stdout"])]
    else:
        printed.append((_STDERR, answer.stderr, wants["stderr"]))
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


def _container(pod: Obj, name: str) -> Obj:
    spec, pod_name = pod.get("spec") or {}, pod["metadata"]["name"]
    if not spec.get("nodeName"):
        raise bad_request(f"pod {pod_name} does not have a host assigned")
    phase = (pod.get("status") or {}).get("phase")
    if phase in _ENDED:
        raise bad_request(f"cannot exec into a container in a completed pod; current phase is {phase}")
    return chosen_container(pod, name)


def refused_stream(subresource: str) -> ApiError:
    """Attach, port-forward and proxy need a process to talk to, and simulated pods have none."""
    return bad_request(f"{subresource} is not possible here: pods of this cluster are simulated and run no process")
