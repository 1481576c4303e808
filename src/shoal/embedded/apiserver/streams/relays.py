"""Relays logs and command streams between a client and a kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

import aiohttp
from aiohttp import WSMsgType, web

from shoal.embedded.apiserver.status import ApiError, unavailable
from shoal.embedded.apiserver.streams.channels import PROTOCOLS, RequestedChannels, check_upgrade, new_socket
from shoal.embedded.apiserver.streams.kubelet_address import Kubelet
from shoal.embedded.apiserver.streams.kubelets import Kubelets, dial_words, refusal_in, url_of
from shoal.embedded.apiserver.streams.sending import cut_off_if_stalled, send

_PROTOCOL = "Sec-WebSocket-Protocol"


async def relay_log(
    request: web.BaseRequest, kubelets: Kubelets, kubelet: Kubelet, path: str, query: Mapping[str, str]
) -> web.StreamResponse:
    """The log at a kubelet's path, piece by piece."""
    response: web.StreamResponse | None = None
    try:
        async with kubelets.get(kubelet, path, query) as answer:
            if answer.status != 200:
                raise await refusal_in(answer, "pods/log", path.split("/")[-2])
            response = web.StreamResponse(headers={"Content-Type": "text/plain"})
            await _pour(request, answer, response)
            return response
    except (aiohttp.ClientError, OSError) as error:
        if response is not None:
            # The answer has begun: all that is left to say is that it ends here.
            raise ConnectionResetError from error
        shown = url_of(kubelet, path, query)
        raise ApiError(500, "", f'Get "{shown}": {dial_words(error, kubelet)}') from None


async def relay_page(request: web.BaseRequest, kubelets: Kubelets, kubelet: Kubelet, path: str) -> web.StreamResponse:
    """Any page of a kubelet, with the kubelet's own code: what `nodes/proxy` is."""
    response: web.StreamResponse | None = None
    try:
        async with kubelets.get(kubelet, path, list(request.query.items())) as answer:
            kind = answer.headers.get("Content-Type", "text/plain")
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": kind})
            await _pour(request, answer, response)
            return response
    except (aiohttp.ClientError, OSError) as error:
        if response is not None:
            raise ConnectionResetError from error
        raise unavailable(f"error trying to reach service: {dial_words(error, kubelet)}") from None


async def relay_command(
    request: web.BaseRequest,
    kubelets: Kubelets,
    kubelet: Kubelet,
    path: str,
    query: Sequence[tuple[str, str]],
    protocols: Sequence[str] = PROTOCOLS,
) -> web.StreamResponse:
    """Frames both ways until the kubelet has said how the command ended, or the client is gone."""
    asked = {one.strip() for line in request.headers.getall(_PROTOCOL, []) for one in line.split(",")}
    inner = await kubelets.converse(kubelet, path, query, [one for one in protocols if one in asked] or protocols)
    try:
        check_upgrade(request, protocols)
        outer = new_socket((inner.protocol,) if inner.protocol else protocols)
        await outer.prepare(request)
        sending = asyncio.ensure_future(_sent_on(outer, inner))
        try:
            async for message in inner:
                with cut_off_if_stalled(request.transport):
                    if message.type is WSMsgType.BINARY:
                        await outer.send_bytes(message.data)
                    elif message.type is WSMsgType.TEXT:
                        await outer.send_str(message.data)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        with suppress(ConnectionError):
            await outer.close(code=inner.close_code or aiohttp.WSCloseCode.GOING_AWAY)
        return outer
    finally:
        await inner.close()


def command_query(command: Sequence[str], wanted: RequestedChannels) -> list[tuple[str, str]]:
    """The query of an exec as kubelets read it; without a command, of an attach."""
    flags = (("input", wanted.stdin), ("output", wanted.stdout), ("error", wanted.stderr), ("tty", wanted.tty))
    return [*(("command", word) for word in command), *((name, "1") for name, is_on in flags if is_on)]


async def _sent_on(outer: web.WebSocketResponse, inner: aiohttp.ClientWebSocketResponse) -> None:
    """What the client says, until it says no more; then the kubelet need not wait for it either."""
    async for message in outer:
        if message.type is WSMsgType.BINARY:
            await inner.send_bytes(message.data)
        elif message.type is WSMsgType.TEXT:
            await inner.send_str(message.data)
    await inner.close()


async def _pour(request: web.BaseRequest, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
    await response.prepare(request)
    async for piece in answer.content.iter_any():
        await send(request, response, piece)
    await response.write_eof()
