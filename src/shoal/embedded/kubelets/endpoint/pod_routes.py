"""Serves the kubelet's paths of a pod: logs, commands and ports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from aiohttp import web

from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.streams.channels import PROTOCOLS, RequestedChannels, check_upgrade, say
from shoal.embedded.apiserver.streams.exec_pod import refused_stream
from shoal.embedded.apiserver.streams.live_command import converse
from shoal.embedded.apiserver.streams.log_options import log_options
from shoal.embedded.apiserver.streams.log_runs import container_status, is_previous
from shoal.embedded.apiserver.streams.port_bytes import PORTS_PROTOCOL, pass_bytes
from shoal.embedded.apiserver.streams.terminal import NOT_FOUND, CommandOutput
from shoal.embedded.kubelets.endpoint.log_text import LogText
from shoal.embedded.kubelets.endpoint.request_targets import (
    KubeletRefusal,
    NodeUnreachable,
    RequestTargets,
    has_container,
)
from shoal.embedded.kubelets.node_view import LogOptions, NodeView, Obj, RealNodeView
from shoal.units.errors import UserError

_TRUE = ("1", "t", "true")


class PodRoutes:
    def __init__(self, places: RequestTargets, seconds: Callable[[], float], follow_every_s: float) -> None:
        """`seconds`: returns the cluster's time; `follow_every_s`: the interval for reading a followed log, in real
        time.
        """
        self._targets = places
        self._seconds = seconds
        self._follow_every_s = follow_every_s

    def routes(self) -> list[web.RouteDef]:
        pod = "/{namespace}/{pod}"
        found = [web.get(f"/containerLogs{pod}/{{container}}", self._log)]
        for path in (f"/exec{pod}/{{container}}", f"/exec{pod}/{{uid}}/{{container}}"):
            found += [web.get(path, self._command), web.post(path, self._command)]
        for path in (f"/attach{pod}/{{container}}", f"/attach{pod}/{{uid}}/{{container}}"):
            found += [web.get(path, self._attach), web.post(path, self._attach)]
        for path in (f"/portForward{pod}", f"/portForward{pod}/{{uid}}"):
            found += [web.get(path, self._forward), web.post(path, self._forward)]
        return found

    async def _log(self, request: web.Request) -> web.StreamResponse:
        name, container = request.match_info["pod"], request.match_info["container"]
        node, pod = self._targets.pod(request, f'pod "{name}" does not exist')
        if not has_container(pod, container):
            raise KubeletRefusal(404, f'container "{container}" not found in pod "{name}"')
        try:
            options = log_options(request.query, name)
            previous = is_previous(pod, container, previous=options.previous)
        except ApiError as error:
            raise KubeletRefusal(error.code, error.message) from None
        wanted = LogOptions(
            container,
            previous,
            options.follow and not previous,
            options.timestamps,
            options.tail_lines,
            options.since_s(self._seconds()),
            options.limit_bytes,
        )
        if wanted.follow:
            return await self._followed(request, node, pod, wanted)
        lines = node.log(pod["metadata"]["uid"], container, previous=previous)
        return web.Response(body=LogText(wanted).more(lines))

    async def _followed(self, request: web.Request, node: NodeView, pod: Obj, wanted: LogOptions) -> web.StreamResponse:
        """Streams the log until the run that it began with ends."""
        container, metadata = wanted.container, pod["metadata"]
        uid, run, text = metadata["uid"], _run(pod, container), LogText(wanted)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        while True:
            # The state is read before the lines, so that the last lines are not missed.
            is_running = node.is_running(uid, container)
            now = node.pod(metadata["namespace"], metadata["name"])
            is_over = now is None or _run(now, container) != run
            more = text.more(node.log(uid, container, previous=is_over))
            if more:
                await response.write(more)
            if text.is_full or is_over or not is_running:
                await response.write_eof()
                return response
            await asyncio.sleep(self._follow_every_s)
            if not node.is_reachable():
                raise NodeUnreachable

    async def _command(self, request: web.Request) -> web.StreamResponse:
        node, uid = self._pod(request)
        container = request.match_info["container"]
        command = request.query.getall("command", [])
        if not command:
            raise KubeletRefusal(400, "you must specify at least one command for the container")
        wanted = _wanted(request, node, uid)
        if not isinstance(node, RealNodeView):
            return await say(request, node.run(uid, container, command), wanted)
        try:
            running = await node.open_command(uid, container, command, tty=wanted.tty)
        except UserError as error:
            return await say(request, CommandOutput(stderr=f"{error.what}\n", code=NOT_FOUND), wanted)
        return await converse(request, running, wanted)

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        node, uid = self._pod(request)
        if not isinstance(node, RealNodeView):
            raise KubeletRefusal(400, refused_stream("attach").message)
        wanted = _wanted(request, node, uid)
        try:
            attached = await node.attach(uid, request.match_info["container"], takes_input=wanted.stdin)
        except UserError as error:
            raise KubeletRefusal(500, f"unable to upgrade connection: {error.what}") from None
        return await converse(request, attached, wanted)

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        node, uid = self._pod(request)
        if not isinstance(node, RealNodeView):
            raise KubeletRefusal(400, refused_stream("portforward").message)
        _check_upgrade(request, (PORTS_PROTOCOL,))
        try:
            ports = await node.forward_ports(uid)
        except UserError as error:
            raise KubeletRefusal(500, f"unable to upgrade connection: {error.what}") from None
        return await pass_bytes(request, ports)

    def _pod(self, request: web.Request) -> tuple[NodeView, str]:
        """The node of the pod, and the pod's uid."""
        node, pod = self._targets.pod(request, "pod does not exist")
        uid: str = pod["metadata"]["uid"]
        if request.match_info.get("uid", uid) != uid:
            raise KubeletRefusal(404, "pod does not exist")
        return node, uid


def _wanted(request: web.Request, node: NodeView, uid: str) -> RequestedChannels:
    """Of a container that runs."""
    container = request.match_info["container"]
    if not node.is_running(uid, container):
        raise KubeletRefusal(500, f'unable to upgrade connection: container not found ("{container}")')
    flags = (request.query.get(name, "") in _TRUE for name in ("input", "output", "error", "tty"))
    _check_upgrade(request, PROTOCOLS)
    return RequestedChannels(*flags)


def _check_upgrade(request: web.Request, protocols: Sequence[str]) -> None:
    try:
        check_upgrade(request, protocols)
    except ApiError as error:
        raise KubeletRefusal(error.code, error.message) from None


def _run(pod: Obj, container: str) -> int:
    """The number of the container's current run, because restarts keep the name."""
    return int((container_status(pod, container) or {}).get("restartCount") or 0)
