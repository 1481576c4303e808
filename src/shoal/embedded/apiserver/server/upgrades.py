"""Doors that are conversations: exec, attach, port-forward, logs, proxies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping

from aiohttp import web

from shoal.embedded.apiserver.calls import Actor, AdmissionAttributes, Call
from shoal.embedded.apiserver.paths import Target
from shoal.embedded.apiserver.resource import Obj, Resource
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.streams.channels import check_origin

Conversation = Callable[[web.BaseRequest, Target, Resource, Actor], Awaitable[web.StreamResponse]]

_CONNECTS = {"attach": "PodAttachOptions", "exec": "PodExecOptions", "portforward": "PodPortForwardOptions"}
"""Doors that admission is asked about before they open, and the kind of what is asked for there."""


class Upgrades:
    def __init__(
        self,
        stage: ServerContext,
        conversations: Mapping[tuple[str, str, str], Conversation],
        names: Collection[str] = (),
    ) -> None:
        """`names`: under which names clients reach this server."""
        self._stage = stage
        self._conversations = conversations
        self._names = names

    def serves(self, target: Target) -> bool:
        """Whether the target is a conversation: it may last for hours, and has no seat in flow control."""
        return (target.group, target.plural, target.subresource) in self._conversations

    async def serve(
        self, request: web.BaseRequest, target: Target, resource: Resource, actor: Actor
    ) -> web.StreamResponse | None:
        found = self._conversations.get((target.group, target.plural, target.subresource))
        if found is None:
            return None
        check_origin(request, self._names)
        await self._admit(request, target, resource, actor)
        return await found(request, target, resource, actor)

    async def _admit(self, request: web.BaseRequest, target: Target, resource: Resource, actor: Actor) -> None:
        kind = _CONNECTS.get(target.subresource)
        call = Call("connect", resource, actor, target.namespace, target.name, target.subresource)
        if kind is None or not self._stage.dynamic.concerns(call, "CONNECT"):
            return
        admission = AdmissionAttributes("CONNECT", call, target.name, _options(kind, request), None)
        await self._stage.dynamic.mutate(admission)
        await self._stage.dynamic.validate(admission)


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
