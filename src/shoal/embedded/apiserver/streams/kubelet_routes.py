"""Lists the paths below a pod or a node that lead to a kubelet, and the operation of each.

A pod whose node tells of no kubelet is answered here, from what its objects say.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from aiohttp import web

from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.authorize import Authorizer
from shoal.embedded.apiserver.security.verdict import refusal
from shoal.embedded.apiserver.status import bad_request, method_not_supported, not_found, unavailable
from shoal.embedded.apiserver.streams.containers import chosen_container
from shoal.embedded.apiserver.streams.exec_pod import (
    asked_of,
    attach_of,
    check_host,
    exec_pod,
    refused_stream,
)
from shoal.embedded.apiserver.streams.kubelet_address import Kubelet, kubelet_of
from shoal.embedded.apiserver.streams.kubelets import Kubelets
from shoal.embedded.apiserver.streams.log_options import log_options, passed_on
from shoal.embedded.apiserver.streams.log_without_kubelet import pod_log
from shoal.embedded.apiserver.streams.node_connections import NodeConnections
from shoal.embedded.apiserver.streams.port_bytes import PORTS_PROTOCOL
from shoal.embedded.apiserver.streams.relays import command_query, relay_command, relay_log, relay_page
from shoal.embedded.apiserver.streams.service_proxy import check_service
from shoal.embedded.apiserver.streams.terminal import Terminal


class PathTarget(Protocol):
    """The part of a request's target that streams look at."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def rest(self) -> str: ...


Conversation = Callable[[web.BaseRequest, PathTarget, Any, Actor], Awaitable[web.StreamResponse]]


def conversations(
    reader: Reader,
    authorizer: Authorizer,
    terminal: Terminal,
    kubelets: Kubelets,
    connections: NodeConnections | None = None,
) -> Mapping[tuple[str, str, str], Conversation]:
    """By group, plural and subresource. `connections`: of joined machines."""
    doors = _Doors(reader, authorizer, terminal, kubelets, connections or NodeConnections(lambda _: False))
    return {
        ("", "pods", "exec"): doors.run_command,
        ("", "pods", "attach"): doors.attach,
        ("", "pods", "log"): doors.log,
        ("", "pods", "portforward"): doors.forward,
        ("", "pods", "proxy"): doors.refused("proxy"),
        ("", "nodes", "proxy"): doors.page,
        ("", "services", "proxy"): doors.service,
    }


class _Doors:
    def __init__(
        self,
        reader: Reader,
        authorizer: Authorizer,
        terminal: Terminal,
        kubelets: Kubelets,
        connections: NodeConnections,
    ) -> None:
        self._reader = reader
        self._authorizer = authorizer
        self._terminal = terminal
        self._kubelets = kubelets
        self._connections = connections

    async def run_command(self, request: web.BaseRequest, info: PathTarget, _: Any, actor: Actor) -> web.StreamResponse:
        self._check_create("exec", info, actor)
        pod = self._pod(info)
        node = self._node_of(pod)
        kubelet = await self._kubelet_of(node)
        if kubelet is None:
            return await exec_pod(request, pod, node, self._terminal)
        what = asked_of(pod, request.query)
        path = f"/exec/{info.namespace}/{info.name}/{what.container['name']}"
        return await relay_command(request, self._kubelets, kubelet, path, command_query(what.command, what.wanted))

    async def attach(self, request: web.BaseRequest, info: PathTarget, _: Any, actor: Actor) -> web.StreamResponse:
        self._check_create("attach", info, actor)
        pod = self._pod(info)
        kubelet = await self._kubelet_of(self._node_of(pod))
        if kubelet is None:
            raise refused_stream("attach")
        what = attach_of(pod, request.query)
        path = f"/attach/{info.namespace}/{info.name}/{what.container['name']}"
        return await relay_command(request, self._kubelets, kubelet, path, command_query((), what.wanted))

    async def forward(self, request: web.BaseRequest, info: PathTarget, _: Any, actor: Actor) -> web.StreamResponse:
        self._check_create("portforward", info, actor)
        pod = self._pod(info)
        kubelet = await self._kubelet_of(self._node_of(pod))
        if kubelet is None:
            raise refused_stream("portforward")
        check_host(pod)
        path = f"/portForward/{info.namespace}/{info.name}"
        return await relay_command(request, self._kubelets, kubelet, path, (), (PORTS_PROTOCOL,))

    async def log(self, request: web.BaseRequest, info: PathTarget, _: Any, __: Actor) -> web.StreamResponse:
        pod = self._pod(info)
        if not (pod.get("spec") or {}).get("nodeName"):
            log_options(request.query, info.name)
            chosen_container(pod, request.query.get("container", ""))
            return web.Response(status=204)
        kubelet = await self._kubelet_of(self._node_of(pod))
        if kubelet is None:
            return web.Response(text=pod_log(pod, request.query))
        log_options(request.query, info.name)
        container = chosen_container(pod, request.query.get("container", ""))["name"]
        path = f"/containerLogs/{info.namespace}/{info.name}/{container}"
        return await relay_log(request, self._kubelets, kubelet, path, passed_on(request.query))

    async def page(self, request: web.BaseRequest, info: PathTarget, _: Any, __: Actor) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            raise method_not_supported("nodes", "")
        node = self._reader.get("", "nodes", "", info.name)
        if node is None:
            raise not_found("nodes", "", info.name)
        kubelet = await self._kubelet_of(node)
        if kubelet is None:
            raise unavailable(f'node "{info.name}" has no kubelet that can be reached from here')
        path = info.rest
        if not {".", ".."}.isdisjoint(path.split("/")):
            raise bad_request('the path behind a proxy may not have "." or ".." as a segment')
        return await relay_page(request, self._kubelets, kubelet, f"/{path}")

    async def service(self, _: web.BaseRequest, info: PathTarget, __: Any, ___: Actor) -> web.StreamResponse:
        check_service(self._reader, info.namespace, info.name)
        raise refused_stream("proxy")

    def refused(self, subresource: str) -> Conversation:
        async def refuse(_: web.BaseRequest, info: PathTarget, __: Any, actor: Actor) -> web.StreamResponse:
            if subresource != "proxy":
                self._check_create(subresource, info, actor)
            self._pod(info)
            raise refused_stream(subresource)

        return refuse

    def _check_create(self, subresource: str, info: PathTarget, actor: Actor) -> None:
        """A WebSocket is opened with GET, which by itself asks for a right to read only."""
        asked = RequestInfo("create", "", "v1", "pods", subresource, info.namespace, info.name)
        verdict = self._authorizer.allows(actor, asked)
        if not verdict.allowed:
            raise refusal(actor, asked, verdict)

    def _pod(self, info: PathTarget) -> dict[str, Any]:
        pod = self._reader.get("", "pods", info.namespace, info.name)
        if pod is None:
            raise not_found("pods", "", info.name)
        return pod

    async def _kubelet_of(self, node: dict[str, Any] | None) -> Kubelet | None:
        """A joined machine is reached by its own connections only, whatever its Node says."""
        name = node["metadata"]["name"] if node is not None else ""
        return await self._connections.kubelet(name) if self._connections.has_joined(name) else kubelet_of(node)

    def _node_of(self, pod: dict[str, Any]) -> dict[str, Any] | None:
        name = (pod.get("spec") or {}).get("nodeName") or ""
        return self._reader.get("", "nodes", "", name) if name else None
