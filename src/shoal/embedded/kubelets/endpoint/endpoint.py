"""Serves a fleet of simulated kubelets over HTTP: one HTTPS port for the kubelet API, and one port for Prometheus.

All nodes share both ports; requests name the node or pod (`request_targets.py`). The first port answers only clients
whose certificate `callers.py` accepts. A node that has failed or is cut off does not answer: its connections end
without a response. The certificate of the port is created at the start and is never written to a file.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import msgspec
from aiohttp import web

from shoal.client.certificates import new_authority, new_server
from shoal.embedded.apiserver.security.showing import show
from shoal.embedded.kubelets.endpoint.callers import Caller, Callers
from shoal.embedded.kubelets.endpoint.custom_metrics_routes import CUSTOM_PREFIX, CustomMetricsRoutes, GpuSeries
from shoal.embedded.kubelets.endpoint.exporter_routes import ExporterRoutes
from shoal.embedded.kubelets.endpoint.external_metrics_routes import (
    EXTERNAL_PREFIX,
    ExternalMetricsRoutes,
    ExternalSource,
)
from shoal.embedded.kubelets.endpoint.metrics_api import LabelsOf, MetricsApi
from shoal.embedded.kubelets.endpoint.metrics_objects import SERVER_NAME
from shoal.embedded.kubelets.endpoint.metrics_routes import PREFIX, MetricsRoutes
from shoal.embedded.kubelets.endpoint.node_routes import NodeRoutes
from shoal.embedded.kubelets.endpoint.pod_routes import PodRoutes
from shoal.embedded.kubelets.endpoint.request_targets import KubeletRefusal, NodeUnreachable, RequestTargets
from shoal.embedded.kubelets.node_view import MeasuredNodes, NodeViews
from shoal.units.errors import UserError

_SHUTDOWN_S = 0.2
_PROXIED = (PREFIX, CUSTOM_PREFIX, EXTERNAL_PREFIX)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class EndpointSettings(msgspec.Struct, frozen=True):
    host: str = "127.0.0.1"
    kubelet_port: int = 10250
    """0: any free port."""
    metrics_port: int = 9400
    """The port of NVIDIA's exporter; 0: any free port."""
    client_ca: str = ""
    """PEM, the `client-ca-file` of the API server: its kubelet client is accepted."""
    proxy_ca: str = ""
    """PEM, its `requestheader-client-ca-file`: its proxy may ask for metrics.k8s.io."""
    proxy_names: tuple[str, ...] = ("front-proxy-client",)
    follow_every_s: float = 0.2
    """How often a followed log is read."""
    figures: Callable[[], str] = str
    """Returns metrics of other parts of the process, for the fleet's own page."""
    measured: MeasuredNodes | None = None
    """The nodes of metrics.k8s.io, if they are not those of the endpoint."""
    external: ExternalSource | None = None
    """The metrics of external.metrics.k8s.io, if they are served."""


class Ports(msgspec.Struct, frozen=True):
    """The ports of a listening endpoint."""

    host: str
    kubelet_port: int
    metrics_port: int

    @property
    def kubelet_url(self) -> str:
        """The value of the annotation `shoal.dev/endpoint` of a Node."""
        return f"https://{_in_url(self.host)}:{self.kubelet_port}"

    @property
    def metrics_url(self) -> str:
        return f"http://{_in_url(self.host)}:{self.metrics_port}"


def _own_label(node: str) -> dict[str, str]:
    return {"kubernetes.io/hostname": node}


class Endpoint:
    """Listens from `start` to `stop`."""

    def __init__(
        self,
        nodes: NodeViews,
        settings: EndpointSettings,
        seconds: Callable[[], float],
        labels_of: LabelsOf = _own_label,
    ) -> None:
        """`seconds`: returns the cluster's time; `labels_of`: returns the labels of a Node object."""
        self._settings = settings
        self._callers = Callers(settings.client_ca, settings.proxy_ca, settings.proxy_names)
        targets = RequestTargets(nodes)
        handlers = [
            PodRoutes(targets, seconds, settings.follow_every_s).routes(),
            NodeRoutes(targets, seconds).routes(),
            MetricsRoutes(MetricsApi(settings.measured or nodes, labels_of), seconds).routes(),
            CustomMetricsRoutes(GpuSeries(nodes, seconds), labels_of).routes(),
        ]
        if settings.external is not None:
            handlers.append(ExternalMetricsRoutes(settings.external, seconds).routes())
        self._kubelet = web.Application(middlewares=[_refusals, self._checked])
        for routes in handlers:
            self._kubelet.add_routes(routes)
        self._exporter = web.Application(middlewares=[_refusals])
        self._exporter.add_routes(ExporterRoutes(nodes, settings.figures).routes())
        self._runners: list[web.AppRunner] = []
        self.ca = ""
        """The authority of the port's certificate, as PEM, which an APIService must trust."""

    async def start(self) -> Ports:
        """Raises UserError if a port is in use."""
        settings = self._settings
        try:
            kubelet = await self._listen(self._kubelet, settings.kubelet_port, "--kubelet-port", self._tls())
            metrics = await self._listen(self._exporter, settings.metrics_port, "--metrics-port", None)
        except BaseException:
            await self.stop()
            raise
        return Ports(settings.host, kubelet, metrics)

    async def stop(self) -> None:
        runners, self._runners = self._runners, []
        for runner in runners:
            await runner.cleanup()

    async def _listen(self, application: web.Application, port: int, option: str, tls: ssl.SSLContext | None) -> int:
        # Handlers are cancelled, because the end of a client that follows a silent log would not be noticed otherwise.
        runner = web.AppRunner(
            application, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_S, handle_signals=False
        )
        self._runners.append(runner)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._settings.host, port, ssl_context=tls).start()
        except OSError as error:
            raise UserError(
                f"cannot listen on {self._settings.host}:{port}: {error.strerror or error}",
                fix=f"choose another port with {option}, or {option} 0 for any free one",
            ) from None
        return int(runner.addresses[0][1])

    def _tls(self) -> ssl.SSLContext:
        now = datetime.now(UTC)  # noqa: TID251 - certificates need the real date
        authority = new_authority(now, "shoal-kubelets")
        self.ca = authority.certificate.decode()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        show(context, new_server(authority, (self._settings.host, "localhost", SERVER_NAME), now))
        self._callers.ask_in(context)
        return context

    @web.middleware
    async def _checked(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        tls = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        who = self._callers.who(tls.getpeercert(True) if tls is not None else None)
        if who == "anonymous":
            raise KubeletRefusal(401, "Unauthorized")
        wanted: Caller = "proxy" if request.path.startswith(_PROXIED) else "server"
        if who != wanted:
            raise KubeletRefusal(403, f"Forbidden: {request.path} is only for the API server")
        return await handler(request)


@web.middleware
async def _refusals(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except KubeletRefusal as refusal:
        # A kubelet's answer to a bad request has no line feed: the API server passes it on unchanged.
        end = "" if refusal.code == 400 else "\n"
        return web.Response(status=refusal.code, text=f"{refusal.text}{end}")
    except NodeUnreachable:
        # The connection ends without a response, as with a missing machine. The returned value is not sent.
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=503)
    except web.HTTPNotFound:
        return web.Response(status=404, text="404 page not found\n")


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
