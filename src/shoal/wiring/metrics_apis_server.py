"""Serves custom.metrics.k8s.io and external.metrics.k8s.io to the API server of any cluster, as an aggregated API.

Guarantees: only the API server's proxy is answered. It shows a certificate of the authority in the ConfigMap
`kube-system/extension-apiserver-authentication`, with one of the allowed names; the API server has authenticated and
authorized the user. The authority of this server's own certificate is made at the start, is in the registration, and is
never written to a file. A group that another server is registered for is left to it. The ClusterRole of this part owns
the registration: it goes with the installation, whatever removes that. An APIService without its server would keep
every namespace from being deleted. Rejected: a hook of the chart, which `kubectl delete -f` does not run.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime

import msgspec
from aiohttp import web

from shoal.api.pod_autoscaling_rules import PodAutoscalingRules
from shoal.client.certificates import new_authority, new_server
from shoal.client.item import Obj
from shoal.client.kind import API_SERVICES, CLUSTER_ROLES, CONFIG_MAPS, SERVICES
from shoal.client.port import Api, Patch
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.data.permissions import POD_AUTOSCALING
from shoal.embedded.apiserver.security.showing import show
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.kubelets.endpoint import api_server_trust
from shoal.embedded.kubelets.endpoint.callers import Callers
from shoal.embedded.kubelets.endpoint.endpoint import EndpointSettings
from shoal.embedded.kubelets.endpoint.metrics_routes import json_answer
from shoal.units.errors import UserError, Where

_LABELS = {"app.kubernetes.io/managed-by": "shoal", "app.kubernetes.io/component": POD_AUTOSCALING}
"""By which an uninstallation finds the APIServices."""
OWN_ROLE = f"shoal-{POD_AUTOSCALING}"
"""The ClusterRole of this part."""
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
GroupVersion = tuple[str, str]


class TrustedProxy(msgspec.Struct, frozen=True):
    """What the API server's proxy shows."""

    ca: str
    """PEM."""
    names: tuple[str, ...]
    """The allowed common names of its certificate; none: any."""


async def read_trust(api: Api) -> TrustedProxy:
    """Raises UserError if the cluster names no authority of a proxy: without it, no request could be answered."""
    try:
        found = (await api.get(CONFIG_MAPS, api_server_trust.NAMESPACE, api_server_trust.NAME)).obj()
    except NotFoundError:
        found = None
    trusted = api_server_trust.trusting(EndpointSettings(proxy_names=()), found)
    if not trusted.proxy_ca:
        what = "the API server has no requestheader-client-ca-file, by which its proxy would be recognized"
        raise UserError(what, fix="start it with --requestheader-client-ca-file and --proxy-client-cert-file")
    return TrustedProxy(trusted.proxy_ca, trusted.proxy_names)


class MetricsApisServer:
    def __init__(self, rules: PodAutoscalingRules, trusted: TrustedProxy, routes: Iterable[web.RouteDef]) -> None:
        self._rules = rules
        self._callers = Callers("", trusted.ca, trusted.names)
        self._application = web.Application(middlewares=[self._checked])
        self._application.add_routes(list(routes))
        self._application.add_routes([web.get("/apis", _groups), web.get("/openapi/v2", _no_schema)])
        self._runner: web.AppRunner | None = None
        self.ca = ""
        self.port = 0

    async def start(self) -> None:
        """Raises UserError if the port is in use."""
        rules = self._rules
        runner = web.AppRunner(self._application, access_log=None, shutdown_timeout=5.0, handle_signals=False)
        await runner.setup()
        try:
            await web.TCPSite(runner, rules.address, rules.port, ssl_context=self._tls()).start()
        except OSError as error:
            await runner.cleanup()
            what = f"cannot listen on {rules.address}:{rules.port}: {error.strerror or error}"
            where = Where(path="podAutoscaling.port")
            raise UserError(what, where=where, fix="choose another port in a ShoalConfiguration") from None
        self._runner = runner
        self.port = int(runner.addresses[0][1])

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def register(self, api: Api, groups: Sequence[GroupVersion]) -> list[str]:
        """The names of the APIServices that lead here. Without the Service, none is written."""
        rules = self._rules
        try:
            await api.get(SERVICES, rules.service_namespace, rules.service_name)
        except NotFoundError:
            return []
        written = []
        owners = await _owners(api)
        for group, version in groups:
            name = f"{version}.{group}"
            if not await leads_elsewhere(api, name, rules):
                wanted = self._api_service(group, version, owners)
                await api.patch(API_SERVICES, "", name, Patch("apply", wanted, force=True))
                written.append(name)
        return written

    def _api_service(self, group: str, version: str, owners: Sequence[Obj]) -> Obj:
        rules = self._rules
        service = {"namespace": rules.service_namespace, "name": rules.service_name, "port": rules.service_port}
        return {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{version}.{group}", "labels": _LABELS, "ownerReferences": owners},
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 200 if version == "v1beta2" else 100,
                "service": service,
                "caBundle": base64.b64encode(self.ca.encode()).decode(),
            },
        }

    def _tls(self) -> ssl.SSLContext:
        rules = self._rules
        now = datetime.now(UTC)  # noqa: TID251 - certificates need the real date
        authority = new_authority(now, "shoal-metrics")
        self.ca = authority.certificate.decode()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        show(context, new_server(authority, (f"{rules.service_name}.{rules.service_namespace}.svc",), now))
        self._callers.ask_in(context)
        return context

    @web.middleware
    async def _checked(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        tls = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        who = self._callers.who(tls.getpeercert(True) if tls is not None else None)
        if who == "proxy":
            return await handler(request)
        code, reason, words = (401, "Unauthorized", "Unauthorized")
        if who != "anonymous":
            code, reason, words = 403, "Forbidden", f"{request.path} is only for the proxy of the API server"
        refusal = ApiError(code, reason, words)
        return json_answer(refusal.status(), refusal.code)


async def _owners(api: Api) -> list[Obj]:
    """None where the rights of this process come from elsewhere."""
    try:
        role = await api.get(CLUSTER_ROLES, "", OWN_ROLE)
    except (NotFoundError, ForbiddenError):
        return []
    return [{"apiVersion": CLUSTER_ROLES.api_version, "kind": CLUSTER_ROLES.name, "name": OWN_ROLE, "uid": role.uid}]


async def leads_elsewhere(api: Api, name: str, rules: PodAutoscalingRules) -> bool:
    """Whether another server is registered with this APIService."""
    try:
        found = (await api.get(API_SERVICES, "", name)).obj()
    except NotFoundError:
        return False
    service = found["spec"].get("service") or {}
    return (service.get("namespace"), service.get("name")) != (rules.service_namespace, rules.service_name)


async def _groups(_: web.Request) -> web.StreamResponse:
    return json_answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})


async def _no_schema(_: web.Request) -> web.StreamResponse:
    return json_answer({"swagger": "2.0", "info": {"title": "metrics", "version": "v1"}, "paths": {}})
