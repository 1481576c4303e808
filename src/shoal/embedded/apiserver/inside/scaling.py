"""The scales of objects and the metrics APIs for an autoscaler in the same process, without HTTP to this server.

The same checks apply as over HTTP: the user's rights, conflicts, admission, quotas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import structs

from shoal.client.item import Obj
from shoal.client.kind import Kind
from shoal.client.refusals import refusal_of
from shoal.client.scaling import SCALE
from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import Actor, Call, Verb
from shoal.embedded.apiserver.request_info import RequestInfo, parse_path
from shoal.embedded.apiserver.security.verdict import refusal

if TYPE_CHECKING:
    from shoal.embedded.apiserver.server.control_plane import ControlPlane


class InsideScaling:
    """Implements `ScalingApi` for one user. `agent` is the manager of the replicas that it writes."""

    def __init__(self, plane: ControlPlane, actor: Actor, agent: str) -> None:
        self._plane = plane
        self._actor = actor
        self._agent = agent

    async def scale(self, kind: Kind, namespace: str, name: str) -> Obj:
        try:
            return await self._plane.inside.scales.read(await self._call("get", kind, namespace, name))
        except status.ApiError as error:
            raise refusal_of(error.status()) from None

    async def rescale(self, kind: Kind, scale: Obj) -> None:
        meta = scale["metadata"]
        try:
            call = await self._call("update", kind, meta.get("namespace", ""), meta["name"])
            await self._plane.inside.scales.replace(call, scale, ())
        except status.ApiError as error:
            raise refusal_of(error.status()) from None

    async def ask(self, path: str, query: Mapping[str, str]) -> Obj:
        parsed = parse_path(path)
        asked = structs.replace(parsed, verb="get" if parsed.name else "list")
        try:
            self._check(asked)
            return await self._plane.inside.aggregated.get(self._actor, asked, query)
        except status.ApiError as error:
            raise refusal_of(error.status()) from None

    async def _call(self, verb: Verb, kind: Kind, namespace: str, name: str) -> Call:
        await self._plane.faults.before(verb)
        resource = self._plane.context.catalog.find(kind.group, kind.version, kind.plural)
        if resource is None or resource.subresource(SCALE) is None:
            raise status.no_such_path()
        self._check(RequestInfo(verb, kind.group, kind.version, kind.plural, SCALE, namespace, name))
        return Call(verb, resource, self._actor, namespace, name, SCALE, self._agent)

    def _check(self, asked: RequestInfo) -> None:
        verdict = self._plane.context.authorizer.allows(self._actor, asked)
        if not verdict.allowed:
            raise refusal(self._actor, asked, verdict)
