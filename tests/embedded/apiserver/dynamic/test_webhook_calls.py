"""Calls to webhooks: where they go, whom they trust, and every way in which they fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from build.admission_objects import GROUP, configure, refusal, validating, webhook
from build.hook_server import HookServer, denied, hook_server
from build.planes import Operations, config_map

Obj = dict[str, Any]


async def test_a_webhook_that_is_not_there_fails_the_write_or_is_ignored(
    cluster: Operations, server: HookServer
) -> None:
    client = {"service": {"namespace": "default", "name": "gone", "path": "/x"}, "caBundle": server.bundle}
    await configure(cluster, validating("v", webhook(server, "/x", clientConfig=client)))
    error = await refusal(cluster)
    assert (error.code, error.reason) == (500, "InternalError")
    assert error.message == (
        'Internal error occurred: failed calling webhook "x.example.com": failed to call webhook: '
        'Post "https://gone.default.svc:443/x?timeout=5s": service "gone" not found'
    )
    ignored = validating("v", webhook(server, "/x", clientConfig=client, failurePolicy="Ignore"))
    await cluster.update("validatingwebhookconfigurations", ignored, GROUP)
    await cluster.create("configmaps", config_map("a"))


async def test_a_service_leads_to_its_registered_address(cluster: Operations, server: HookServer) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "hooks", "annotations": {"shoal.dev/endpoint": server.url}},
        "spec": {"ports": [{"port": 443}]},
    }
    await cluster.create("services", service)
    server.answers["/ok"] = denied("reached")
    client = {"service": {"namespace": "default", "name": "hooks", "path": "/ok"}, "caBundle": server.bundle}
    await configure(cluster, validating("v", webhook(server, "/ok", clientConfig=client)))
    assert (await refusal(cluster)).message.endswith("denied the request: reached")


async def test_a_certificate_of_somebody_else_is_not_believed(cluster: Operations, server: HookServer) -> None:
    async with hook_server() as other:
        client = {"url": f"{server.url}/ok", "caBundle": other.bundle}
        await configure(cluster, validating("v", webhook(server, "/ok", clientConfig=client)))
        words = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        assert words in (await refusal(cluster)).message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda _: web.Response(status=500, text="oops"), 'an error on the server ("oops") has prevented'),
        (lambda _: web.Response(status=404), "the server could not find the requested resource"),
        (lambda _: web.Response(text="pardon?"), "couldn't get version/kind; json parse error"),
        (lambda _: {"uid": "another", "allowed": True}, "received invalid webhook response: expected response.uid="),
        (lambda _: {"allowed": True, "patch": "W10="}, "validating webhook may not return response.patch"),
    ],
)
async def test_an_answer_that_means_nothing_fails_the_write(
    cluster: Operations, server: HookServer, answer: Any, words: str
) -> None:
    server.answers["/odd"] = answer
    await configure(cluster, validating("v", webhook(server, "/odd")))
    message = (await refusal(cluster)).message
    assert message.startswith('Internal error occurred: failed calling webhook "odd.example.com": ')
    assert words in message


async def test_a_webhook_that_does_not_answer_in_time_fails_the_write(cluster: Operations) -> None:
    async def silent(_: web.Request) -> web.StreamResponse:
        return await asyncio.Future()

    async with hook_server(posts={"/slow": silent}) as server:
        await configure(cluster, validating("v", webhook(server, "/slow", timeoutSeconds=1)))
        error = await refusal(cluster)
    assert error.message.endswith(f'Post "{server.url}/slow?timeout=1s": context deadline exceeded')


async def test_a_connection_that_was_given_up_is_made_anew(cluster: Operations) -> None:
    calls = []

    async def answer(request: web.Request) -> web.StreamResponse:
        calls.append(await request.json())
        if len(calls) == 1:
            assert request.transport is not None
            request.transport.abort()
        response = {"uid": calls[-1]["request"]["uid"], "allowed": True}
        return web.json_response({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response})

    async with hook_server(posts={"/again": answer}) as server:
        await configure(cluster, validating("v", webhook(server, "/again")))
        await cluster.create("configmaps", config_map("a"))
    assert len(calls) == 2
