"""The options of `shoal run` that serve the pages of `shoal web` in its process, from the caches that it has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.units.errors import UserError, Where
from shoal.units.listening import LOOPBACK_HOSTS, check_listening

if TYPE_CHECKING:
    import socket

    from shoal.cli.prometheus_options import PrometheusOptions
    from shoal.client.http.access import Access
    from shoal.wiring.process_tasks import ProcessTasks
    from shoal.wiring.run_choice import RunChoice

_ADDRESS, _CERTIFICATE, _KEY, _PROXY = "--web-address", "--web-tls-cert-file", "--web-tls-key-file", "--web-proxy"


@dataclass(frozen=True)
class RunPages:
    url: str
    serve: Callable[[ProcessTasks], Awaitable[None]]
    """Until cancelled; it may be called again."""


@dataclass(frozen=True, kw_only=True)
class RunPagesOptions:
    web_address: Annotated[
        str,
        typer.Option(
            _ADDRESS,
            metavar="HOST:PORT",
            help="Serve the pages of shoal web while this process is active. Except on loopback, viewers sign in.",
        ),
    ] = ""
    web_tls_cert_file: Annotated[
        Path | None, typer.Option(_CERTIFICATE, metavar="FILE", help="Serve the pages by HTTPS with this certificate.")
    ] = None
    web_tls_key_file: Annotated[
        Path | None, typer.Option(_KEY, metavar="FILE", help="The private key of that certificate.")
    ] = None
    web_proxy: Annotated[
        list[str] | None,
        typer.Option(
            _PROXY, metavar="ADDRESS", help="A proxy before the pages whose X-Forwarded-Proto is believed; repeatable."
        ),
    ] = None

    def pages(
        self, access: Access, choice: RunChoice, prices: Path | None, samples: PrometheusOptions
    ) -> RunPages | None:
        """None without an address. Raises UserError before anything starts."""
        given = {_CERTIFICATE: self.web_tls_cert_file, _KEY: self.web_tls_key_file, _PROXY: self.web_proxy}
        name = next((name for name, value in given.items() if value), "")
        if not self.web_address:
            if name:
                raise UserError("needs an address of the pages", where=Where(path=name), fix=f"give {_ADDRESS}")
            return None
        from msgspec.structs import replace

        from shoal.cli.prometheus_options import plain_options
        from shoal.cli.web import certificate_of
        from shoal.cli.web_runs import FurtherOptions, WebRun, serve_pages
        from shoal.web.server import WebSettings, trusted_proxies
        from shoal.wiring.telemetry import metrics_endpoint_settings

        endpoint = metrics_endpoint_settings(self.web_address, _ADDRESS)
        if endpoint is None:
            raise UserError("is not an address", where=Where(path=_ADDRESS), fix="write HOST:PORT")
        check_listening(endpoint.host, Where(path=_ADDRESS))
        certificate = certificate_of((self.web_tls_cert_file, _CERTIFICATE), (self.web_tls_key_file, _KEY))
        needs_token = endpoint.host not in LOOPBACK_HOSTS
        if needs_token and certificate is None:
            what = f"the pages are served without encryption: give {_CERTIFICATE} and {_KEY}, or use a proxy with HTTPS"
            typer.echo(f"shoal: warning: {what}", err=True)
        bound = _bound(endpoint.host, endpoint.port)
        settings = WebSettings(
            endpoint.host,
            endpoint.port,
            certificate=certificate,
            trusted_proxies=trusted_proxies(self.web_proxy or (), Where(path=_PROXY)),
        )
        further = FurtherOptions(
            choice.history,
            prices,
            has_recorded_alerts=choice.alerts is not None,
            is_chosen=choice.history is not None,
            samples=plain_options(samples),
        )
        run = WebRun(settings, needs_token, further=further)

        async def serve(tasks: ProcessTasks) -> None:
            # A copy: the server closes its own, and this process may become active again.
            own = replace(settings, listening=bound.dup())
            await serve_pages(tasks, access, replace(run, settings=own))

        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        scheme = "http" if certificate is None else "https"
        return RunPages(f"{scheme}://{host}:{bound.getsockname()[1]}/", serve)


def _bound(host: str, port: int) -> socket.socket:
    """A port in use is one line before the start, instead of an error later."""
    from shoal.embedded.apiserver.server.bound_socket import bind

    try:
        return bind(host, port)
    except UserError as error:
        raise UserError(error.what, where=Where(path=_ADDRESS), fix="choose another port") from None
