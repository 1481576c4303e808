"""Doors that are conversations: exec, attach, port-forward, logs, proxies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping

from aiohttp import web

from shoal.embedded.apiserver.calls import Actor, AdmissionAttributes, Call
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.resource import Obj, Resource
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.streams.channels import check_origin

Conversation = Callable[[web.BaseRequest, RequestInfo, Resource, Actor], Awaitable[web.StreamResponse]]

_CONNECTS = {"attach": "PodAttachOptions", "exec": "PodExecOptions", "portforward": "PodPortForwardOptions"}
"""Doors that admission is asked about before they open, and the kind of what is asked for there."""


class Upgrades:
    def __init__(
        self,
        context: ServerContext,
        conversations: Mapping[tuple[str, str, str], Conversation],
        names: Collection[str] = (),
    ) -> None:
        """`names`: under which names clients reach this server."""
        self._context = context
        self._conversations = conversations
        self._names = names

    def serves(self, info: RequestInfo) -> bool:
        """Whether the target is a conversation: it may last for hours, and has no seat in flow control."""
        return (info.group, info.resource, info.subresource) in self._conversations

    async def serve(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, actor: Actor
    ) -> web.StreamResponse | None:
        found = self._conversations.get((info.group, info.resource, info.subresource))
        if found is None:
            return None
        check_origin(request, self._names)
        await self._admit(request, info, resource, actor)
        return await found(request, info, resource, actor)

    async def _admit(self, request: web.BaseRequest, info: RequestInfo, resource: Resource, actor: Actor) -> None:
        kind = _CONNECTS.get(info.subresource)
        call = Call("connect", resource, actor, info.namespace, info.name, info.subresource)
        if kind is None or not self._context.dynamic.concerns(call, "CONNECT"):
            return
        admission = AdmissionAttributes("CONNECT", call, info.name, _options(kind, request), None)
        await self._context.dynamic.mutate(admission)
        await self._context.dynamic.validate(admission)


def _options(kind: str, request: web.BaseRequest) -> Obj:
    query = request.query
    obj: Obj = {"kind": kind, "apiVersion": "v1"}
    for name in ("stdin", "stdout", "stderr", "tty"):
        if query.get(name, "").lower() in ("1", "t", "true"):
            obj[name] = True
    if query.get("container"):
        obj["container"] = query["container"]
    if "command" in query:
        obj["command"] = query.getall("command")
    return obj
