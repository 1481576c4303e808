"""Webhooks that answer with more than anybody has to say, or with what nobody can read."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
from aiohttp import web

from build.admission_objects import configure, mutating, refusal, validating, webhook
from build.hook_server import HookServer, denied, hook_server
from build.planes import Operations, config_map

_PIECE = b" " * (1 << 20)
_PATIENCE_S = 60


async def test_an_answer_without_an_end_is_read_to_a_limit_and_then_fails_the_write(cluster: Operations) -> None:
    sent = asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(_PIECE)
                # A write to whoever has gone may not wait, and nobody would ever hear of his end.
                await asyncio.sleep(0)
        finally:
            sent.set()

    async with asyncio.timeout(_PATIENCE_S), hook_server(posts={"/endless": endless}) as server:
        await configure(cluster, validating("v", webhook(server, "/endless", timeoutSeconds=15)))
        words = (await refusal(cluster)).message
        assert words.startswith('Internal error occurred: failed calling webhook "endless.example.com": ')
        assert "the answer is longer than" in words
        await sent.wait()


@pytest.mark.parametrize("body", [b"[" * 100_000 + b"]" * 100_000, b'{"kind":' + b"[" * 100_000])
async def test_an_answer_nested_too_deeply_is_no_answer(cluster: Operations, server: HookServer, body: bytes) -> None:
    server.answers["/deep"] = lambda _: web.Response(body=body)
    await configure(cluster, validating("v", webhook(server, "/deep", failurePolicy="Ignore")))
    await cluster.create("configmaps", config_map("a"))
    assert len(server.requests("/deep")) == 1


async def test_a_patch_nested_too_deeply_is_no_patch(cluster: Operations, server: HookServer) -> None:
    patch = json.dumps([{"op": "add", "path": "/data", "value": 1}]).replace("1", "[" * 100_000 + "]" * 100_000)
    encoded = base64.b64encode(patch.encode()).decode()
    server.answers["/deep"] = lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": encoded}
    await configure(cluster, mutating("m", webhook(server, "/deep")))
    assert "received undecodable patch in webhook response" in (await refusal(cluster)).message


@pytest.mark.parametrize("code", [1, 399, 600, 99_999, -1])
async def test_a_code_that_no_refusal_has_becomes_one(cluster: Operations, server: HookServer, code: int) -> None:
    server.answers["/no"] = denied("no", code=code)
    await configure(cluster, validating("v", webhook(server, "/no")))
    assert (await refusal(cluster)).code == 400
