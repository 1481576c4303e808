"""Every request comes in here: who asks, may they, what is it, and whatever happens an answer in Kubernetes' form.

Promises: no exception leaves as anything but a `Status`; what is not this server's to explain is 500 with a short line,
and the whole story goes to the log.
"""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter

from aiohttp import web

from shoal.cluster import status
from shoal.cluster.calls import Actor, Verb
from shoal.cluster.faults.fault_paths import FaultPaths, is_of_faults
from shoal.cluster.resource import Resource
from shoal.cluster.rest.options import write_options
from shoal.cluster.rest.stage import Stage
from shoal.cluster.security.authenticate import Authenticator
from shoal.cluster.security.authorize import Authorizer
from shoal.cluster.security.impersonate import impersonated
from shoal.cluster.security.verdict import refusal
from shoal.cluster.server import answers
from shoal.cluster.server.accept import PLAIN, Form, form_of
from shoal.cluster.server.asked import attributes_of, call_of, verb_of
from shoal.cluster.server.documents import Documents
from shoal.cluster.server.metrics import Metrics
from shoal.cluster.server.paths import Target, target_of
from shoal.cluster.server.receiving import body_bytes
from shoal.cluster.server.resources import Resources
from shoal.cluster.server.upgrades import Upgrades

_log = logging.getLogger("shoal.cluster")
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_OPEN_TO_ALL = ("healthz", "livez", "readyz", "version")


class Door:
    def __init__(
        self,
        stage: Stage,
        authenticator: Authenticator,
        authorizer: Authorizer,
        documents: Documents,
        resources: Resources,
        upgrades: Upgrades,
        metrics: Metrics,
        faults: FaultPaths,
    ) -> None:
        self._stage = stage
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._documents = documents
        self._resources = resources
        self._upgrades = upgrades
        self._metrics = metrics
        self._faults = faults

    def end_watches(self) -> None:
        self._resources.streams.end()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        started = perf_counter()
        target = target_of(request.path)
        verb = verb_of(request, target)
        response: web.StreamResponse
        try:
            if verb is None:
                raise status.method_not_supported(target.plural, target.group)
            actor = self._recognised(request)
            asked = attributes_of(target, verb, request)
            verdict = self._authorizer.allows(actor, asked)
            if not verdict.allowed and not _is_open(target):
                raise refusal(actor, asked, verdict)
            if not _is_open(target) and not is_of_faults(target.path):
                await self._faults.before(asked.verb)
            serving = self._serve(request, target, verb, actor)
            # Who hangs up ends a watch; a write that was begun is finished all the same.
            response = await (asyncio.shield(serving) if verb in _WRITES else serving)
        except status.ApiError as error:
            response = answers.refusal(error, _form_of_refusal(request))
        except ConnectionError:
            raise
        except Exception:  # noqa: BLE001 - the last stop: the client gets a Status, the log gets the story
            _log.exception("%s %s failed", request.method, request.path)
            response = answers.refusal(status.internal("the request failed; the server's log has the story"), PLAIN)
        if "pretty" in request.query:
            answers.make_pretty(response, request.query["pretty"])
        seconds = perf_counter() - started
        self._metrics.count(self._labels(target, verb), response.status, seconds, is_long=verb == "watch")
        return response

    def _labels(self, target: Target, verb: str | None) -> tuple[str, str, str, str, str]:
        """What a request is counted as. Made-up names are all one, or clients could make the counters grow for ever."""
        found = self._stage.catalog.find(target.group, target.version, target.plural) if target.is_resource else None
        below, name = target.subresource, (verb or "other").upper()
        if found is None or (below and found.subresource(below) is None):
            return name, "", "", "", ""
        return name, target.group, target.version, target.plural, below

    def _recognised(self, request: web.BaseRequest) -> Actor:
        transport = request.transport
        tls = transport.get_extra_info("ssl_object") if transport is not None else None
        certificate = tls.getpeercert(True) if tls is not None else None
        headers = request.headers
        actor = self._authenticator.authenticate(
            certificate, headers.get("Authorization"), int(self._stage.clock.seconds())
        )
        return impersonated(actor, headers.items(), self._authorizer.allows)

    async def _serve(self, request: web.BaseRequest, target: Target, verb: Verb, actor: Actor) -> web.StreamResponse:
        if is_of_faults(target.path):
            done = self._faults.answer(request.method, target.path, await body_bytes(request))
            return answers.answer(200, done, PLAIN)
        if not target.is_resource:
            return await self._documents.serve(request, target, actor)
        resource = self._stage.catalog.find(target.group, target.version, target.plural)
        if resource is None:
            return await self._documents.serve_unknown(request, target, actor)
        _check_target(target, resource, verb)
        upgraded = await self._upgrades.serve(request, target, resource, actor)
        if upgraded is not None:
            return upgraded
        call = call_of(request, target, verb, resource, actor, write_options(request.query, verb))
        if resource.strategy.deprecation:
            call.warnings.append(resource.strategy.deprecation)
        try:
            return await self._resources.serve(request, call)
        except status.ApiError as error:
            return answers.refusal(error, _form_of_refusal(request), call)


def _form_of_refusal(request: web.BaseRequest) -> Form:
    """A refusal is no table; and there is one for those too who accept nothing that can be made."""
    try:
        return Form(is_yaml=form_of(request.headers.get("Accept", "")).is_yaml)
    except status.ApiError:
        return PLAIN


def _is_open(target: Target) -> bool:
    return not target.is_resource and target.path.strip("/").partition("/")[0] in _OPEN_TO_ALL


def _check_target(target: Target, resource: Resource, verb: str) -> None:
    """Whether the resource has such a path at all, and serves the verb on it."""
    if target.subresource:
        found = resource.subresource(target.subresource)
        if found is None and resource.is_custom:
            raise status.not_found(resource.plural, resource.group, target.name)
        if found is None:
            raise status.no_such_path()
        if verb not in found.verbs and target.subresource not in ("exec", "attach", "portforward", "proxy"):
            raise status.method_not_supported(resource.plural, resource.group)
        return
    if verb not in resource.verbs or (verb in ("update", "patch") and not target.name):
        raise status.method_not_supported(resource.plural, resource.group)
    if resource.namespaced and not target.namespace and (target.name or verb in ("create", "deletecollection")):
        if not target.name:
            raise status.method_not_supported(resource.plural, resource.group)
        raise status.no_such_path()
    if not resource.namespaced and target.namespace and resource.home != ("", "namespaces"):
        raise status.no_such_path()
