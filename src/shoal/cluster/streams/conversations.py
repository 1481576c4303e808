"""Which paths below a pod open a stream, and what each does: the table that the way in looks into."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from aiohttp import web

from shoal.cluster.calls import Actor, Attributes
from shoal.cluster.reading import Reader
from shoal.cluster.security.authorize import Authorizer
from shoal.cluster.security.verdict import refusal
from shoal.cluster.status import not_found
from shoal.cluster.streams.exec_pod import exec_pod, refused_stream
from shoal.cluster.streams.pod_log import pod_log
from shoal.cluster.streams.terminal import Terminal

REFUSED = ("attach", "portforward", "proxy")


class Addressed(Protocol):
    """The part of a request's target that streams look at."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


Conversation = Callable[[web.BaseRequest, Addressed, Any, Actor], Awaitable[web.StreamResponse]]


def pod_conversations(
    reader: Reader, authorizer: Authorizer, terminal: Terminal
) -> Mapping[tuple[str, str, str], Conversation]:
    """By group, plural and subresource."""

    async def run_command(request: web.BaseRequest, target: Addressed, _: Any, actor: Actor) -> web.StreamResponse:
        # A WebSocket is opened with GET, which by itself asks for a right to read only.
        asked = Attributes("create", "", "v1", "pods", "exec", target.namespace, target.name)
        verdict = authorizer.allows(actor, asked)
        if not verdict.allowed:
            raise refusal(actor, asked, verdict)
        pod = reader.get("", "pods", target.namespace, target.name)
        if pod is None:
            raise not_found("pods", "", target.name)
        node_name = (pod.get("spec") or {}).get("nodeName") or ""
        node = reader.get("", "nodes", "", node_name) if node_name else None
        return await exec_pod(request, pod, node, terminal)

    async def log(request: web.BaseRequest, target: Addressed, _: Any, __: Actor) -> web.StreamResponse:
        pod = reader.get("", "pods", target.namespace, target.name)
        if pod is None:
            raise not_found("pods", "", target.name)
        return web.Response(text=pod_log(pod, request.query))

    def refused(subresource: str) -> Conversation:
        async def refuse(_: web.BaseRequest, target: Addressed, __: Any, ___: Actor) -> web.StreamResponse:
            if reader.get("", "pods", target.namespace, target.name) is None:
                raise not_found("pods", "", target.name)
            raise refused_stream(subresource)

        return refuse

    refusals = {("", "pods", name): refused(name) for name in REFUSED}
    return {("", "pods", "exec"): run_command, ("", "pods", "log"): log, **refusals}
