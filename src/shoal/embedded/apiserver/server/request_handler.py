"""Every request comes in here: who asks, may they, what is it, and whatever happens an answer in Kubernetes' form.

Guarantees: no exception leaves as anything but a `Status`; what is not this server's to explain is 500 with a short
line, and the whole story goes to the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from time import perf_counter
from typing import Any

from aiohttp import web

from shoal.client.kubelet.node_joining import is_of_joining
from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import Actor, Verb
from shoal.embedded.apiserver.flowcontrol.control import FlowControl, Seat, metered
from shoal.embedded.apiserver.flowcontrol.levels import Flow
from shoal.embedded.apiserver.large_work import LARGE_BYTES
from shoal.embedded.apiserver.request_info import RequestInfo, parse_path
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.options import write_options
from shoal.embedded.apiserver.security.authenticate import Authenticator
from shoal.embedded.apiserver.security.authorize import Authorizer
from shoal.embedded.apiserver.security.impersonate import impersonated
from shoal.embedded.apiserver.security.verdict import refusal
from shoal.embedded.apiserver.server import answers
from shoal.embedded.apiserver.server.accept import PLAIN, Form, form_of
from shoal.embedded.apiserver.server.connections import USER
from shoal.embedded.apiserver.server.documents import Documents
from shoal.embedded.apiserver.server.join_routes import JoinRoutes
from shoal.embedded.apiserver.server.metrics import Metrics
from shoal.embedded.apiserver.server.open_responses import OpenResponses
from shoal.embedded.apiserver.server.receiving import body_bytes, size_to_come
from shoal.embedded.apiserver.server.request_verb import call_of, verb_of, with_verb
from shoal.embedded.apiserver.server.resources import ResourceHandlers
from shoal.embedded.apiserver.server.routes import check_route, has_path
from shoal.embedded.apiserver.server.upgrades import Upgrades
from shoal.embedded.apiserver.server_faults.fault_routes import FaultRoutes, is_of_faults

_log = logging.getLogger("shoal.cluster")
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_OPEN_TO_ALL = ("healthz", "livez", "readyz", "version")


class RequestHandler:
    def __init__(
        self,
        context: ServerContext,
        authenticator: Authenticator,
        authorizer: Authorizer,
        documents: Documents,
        resources: ResourceHandlers,
        upgrades: Upgrades,
        metrics: Metrics,
        faults: FaultRoutes,
        flow_control: FlowControl,
        joins: JoinRoutes | None = None,
    ) -> None:
        """`joins`: for machines that join, if the cluster accepts any."""
        self._context = context
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._documents = documents
        self._resources = resources
        self._upgrades = upgrades
        self._metrics = metrics
        self._faults = faults
        self._flow_control = flow_control
        self._joins = joins
        self.open_responses = OpenResponses()

    def end_watches(self) -> None:
        self._resources.streams.end()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        started = perf_counter()
        info = parse_path(request.path)
        verb = verb_of(request, info)
        response: web.StreamResponse
        headers: dict[str, str] = {}
        try:
            if verb is None:
                raise status.method_not_supported(info.resource, info.group)
            asked = with_verb(info, verb, request)
            actor = self._recognised(request, asked)
            flow = self._flow_control.flow_of(actor, asked)
            headers = flow.headers
            verdict = self._authorizer.allows(actor, asked)
            if not verdict.allowed and not _is_open(info):
                raise refusal(actor, asked, verdict)
            if not _is_open(info) and not is_of_faults(info.path):
                await self._faults.before(asked.verb)
                self._faults.check(asked)
            if not flow.is_exempt:
                self.open_responses.check(actor, is_watch=verb == "watch")
                request[USER] = actor.name
            if self._upgrades.serves(info) or (self._joins is not None and self._joins.is_conversation(info.path)):
                with self.open_responses.conversation(actor):
                    response = await self._finished(verb, self._serve(request, info, verb, actor, flow, None))
            elif verb in _WRITES:
                held = size_to_come(request) if request.can_read_body and not flow.is_exempt else 0
                with self.open_responses.request(actor, held):
                    response = await self._written(request, info, verb, actor, flow)
            else:
                response = await self._seated(request, info, verb, actor, flow)
        except status.ApiError as error:
            response = answers.refusal(error, _form_of_refusal(request))
        except ConnectionError:
            raise
        except Exception:  # noqa: BLE001 - the last stop: the client gets a Status, the log gets the story
            _log.exception("%s %s failed", request.method, request.path)
            response = answers.refusal(status.internal("the request failed; the server's log has the story"), PLAIN)
        if not response.prepared:
            for name, value in headers.items():
                response.headers[name] = value
        if "pretty" in request.query:
            await answers.make_pretty(self._context, response, request.query["pretty"], request.get(USER, ""))
        seconds = perf_counter() - started
        self._metrics.count(self._labels(info, verb), response.status, seconds, is_long=verb == "watch")
        return response

    async def _finished(self, verb: str, serving: Coroutine[Any, Any, web.StreamResponse]) -> web.StreamResponse:
        """Who hangs up ends a watch; a write that was begun is finished all the same."""
        return await (asyncio.shield(serving) if verb in _WRITES else serving)

    async def _written(
        self, request: web.BaseRequest, info: RequestInfo, verb: Verb, actor: Actor, flow: Flow
    ) -> web.StreamResponse:
        """The body is read before the request takes a seat: a slow client does not delay others."""
        resource = self._context.catalog.find(info.group, info.version, info.resource)
        size = len(await body_bytes(request)) if resource is not None and request.can_read_body else 0
        if resource is not None and info.name and verb != "delete":
            # A short patch of a large object costs as much as the object.
            present = self._context.state.get(resource.ref(info.namespace, info.name))
            size = max(size, len(present.data) if present is not None else 0)
        return await self._seated(request, info, verb, actor, flow, size)

    async def _seated(
        self, request: web.BaseRequest, info: RequestInfo, verb: Verb, actor: Actor, flow: Flow, size: int = 0
    ) -> web.StreamResponse:
        if flow.is_exempt:
            return await self._finished(verb, self._serve(request, info, verb, actor, flow, None))
        if size < LARGE_BYTES and flow.level.takes(flow):
            seat = Seat(flow)
        else:
            seat = await self._flow_control.seat(flow, actor.name if size >= LARGE_BYTES else "")
        return await self._finished(verb, self._execute(self._serve(request, info, verb, actor, flow, seat), seat))

    async def _execute(self, serving: Coroutine[Any, Any, web.StreamResponse], seat: Seat) -> web.StreamResponse:
        try:
            return await metered(serving, seat)
        finally:
            seat.release()

    def _labels(self, info: RequestInfo, verb: str | None) -> tuple[str, str, str, str, str]:
        """What a request is counted as. Made-up names are all one, or clients could make the counters grow for ever."""
        found = self._context.catalog.find(info.group, info.version, info.resource) if info.is_resource else None
        below, name = info.subresource, (verb or "other").upper()
        if found is None or (below and found.subresource(below) is None):
            return name, "", "", "", ""
        return name, info.group, info.version, info.resource, below

    def _recognised(self, request: web.BaseRequest, asked: RequestInfo) -> Actor:
        transport = request.transport
        tls = transport.get_extra_info("ssl_object") if transport is not None else None
        certificate = tls.getpeercert(True) if tls is not None else None
        headers = request.headers
        actor = self._authenticator.authenticate(
            certificate, headers.get("Authorization"), int(self._context.clock.seconds()), _address_of(transport)
        )
        return impersonated(actor, headers.items(), asked, self._authorizer.allows)

    async def _serve(
        self, request: web.BaseRequest, info: RequestInfo, verb: Verb, actor: Actor, flow: Flow, seat: Seat | None
    ) -> web.StreamResponse:
        if is_of_faults(info.path):
            done = self._faults.answer(request.method, info.path, await body_bytes(request))
            return answers.answer(200, done, PLAIN)
        if self._joins is not None and is_of_joining(info.path):
            return await self._joins.serve(request, info.path, actor)
        if not info.is_resource:
            return await self._documents.serve(request, info, actor)
        resource = self._context.catalog.find(info.group, info.version, info.resource)
        if resource is None:
            return await self._unknown(request, info, verb, actor, seat)
        if resource.is_custom and not has_path(info, resource):
            return answers.no_page()
        check_route(info, resource, verb)
        upgraded = await self._upgrades.serve(request, info, resource, actor)
        if upgraded is not None:
            return upgraded
        call = call_of(request, info, verb, resource, actor, write_options(request.query, verb))
        if seat is not None:
            call.begun, call.charge = seat.release, seat.charge
        if verb == "watch":
            call.headers = flow.headers
            self.open_responses.enter_watch(actor.name)
        if resource.strategy.deprecation:
            call.warnings.append(resource.strategy.deprecation)
        try:
            return await self._resources.serve(request, call)
        except status.ApiError as error:
            return answers.refusal(error, _form_of_refusal(request), call)
        finally:
            if verb == "watch":
                self.open_responses.leave_watch(actor.name)

    async def _unknown(
        self, request: web.BaseRequest, info: RequestInfo, verb: Verb, actor: Actor, seat: Seat | None
    ) -> web.StreamResponse:
        """What this server does not serve, though an aggregated API may."""
        if verb != "watch":
            return await self._documents.serve_unknown(request, info, actor)
        if seat is not None:
            seat.release()
        self.open_responses.enter_watch(actor.name)
        try:
            return await self._documents.serve_unknown(request, info, actor)
        finally:
            self.open_responses.leave_watch(actor.name)


def _address_of(transport: asyncio.BaseTransport | None) -> str:
    """The address of the client; a connection that has just ended has none."""
    found = transport.get_extra_info("peername") if transport is not None else None
    return str(found[0]) if isinstance(found, tuple) and found else ""


def _form_of_refusal(request: web.BaseRequest) -> Form:
    """A refusal is no table; and there is one for those too who accept nothing that can be made."""
    try:
        return Form(is_yaml=form_of(request.headers.get("Accept", "")).is_yaml)
    except status.ApiError:
        return PLAIN


def _is_open(info: RequestInfo) -> bool:
    return not info.is_resource and info.path.strip("/").partition("/")[0] in _OPEN_TO_ALL
