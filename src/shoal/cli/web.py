"""Implements `shoal web`: serves pages about a cluster to browsers, until Ctrl-C; nothing can be changed with them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions, announce
from shoal.cli.log_options import LoggingOptions
from shoal.cli.option_groups import with_options
from shoal.cli.prometheus_options import PrometheusOptions, plain_options
from shoal.units.errors import UserError, Where
from shoal.units.listening import check_listening

if TYPE_CHECKING:
    from shoal.cli.web_runs import FurtherOptions
    from shoal.client.http.access import Access

_PORT = 8090
_LOOPBACK = "127.0.0.1"
_HOST, _CERTIFICATE, _KEY = "--host", "--tls-cert-file", "--tls-private-key-file"
_PROXY = "--trusted-proxy"


@dataclass(frozen=True, kw_only=True)
class WebOptions(PrometheusOptions):
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes any free port.")] = _PORT
    host: Annotated[
        str | None,
        typer.Option(
            _HOST,
            metavar="ADDRESS",
            help="Listen on this address. Viewers then sign in with a token of their Kubernetes account, and see what "
            f"it may list. By default {_LOOPBACK}, without a token.",
        ),
    ] = None
    tls_cert_file: Annotated[
        Path | None, typer.Option(_CERTIFICATE, metavar="FILE", help="Serve HTTPS with this certificate, as PEM.")
    ] = None
    tls_private_key_file: Annotated[
        Path | None, typer.Option(_KEY, metavar="FILE", help="The private key of the certificate, as PEM.")
    ] = None

    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            _PROXY,
            metavar="ADDRESS",
            help="An address or network of a proxy in front, whose X-Forwarded-Proto is believed; may be given several "
            "times.",
        ),
    ] = None
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the history, for the pages cost and timelines; by default that of the cluster of shoal up.",
        ),
    ] = None
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Prices that the catalogue does not have, as YAML or JSON.")
    ] = None
    time_zone: Annotated[str, typer.Option(metavar="ZONE", help="Where days and months begin: UTC, Europe/Berlin.")] = (
        "UTC"
    )
    alerts_from: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="A Prometheus or an Alertmanager, for the page alerts; history: the alerts that Shoal has evaluated.",
        ),
    ] = ""
    table: Annotated[
        str,
        typer.Option(
            "--table",
            metavar="ADDRESS",
            help="Print one table and end, instead of serving pages: the address of its page, # and its name, as in "
            "/queues#waits.",
        ),
    ] = ""

    def further(self, access: Access) -> FurtherOptions:
        from shoal.cli.web_runs import FurtherOptions, own_history

        folder = own_history(access) if self.history is None else self.history.expanduser().absolute()
        samples = plain_options(self)
        samples.address()
        is_chosen = self.history is not None
        return FurtherOptions(
            folder, self.prices, self.time_zone, self.alerts_from, is_chosen=is_chosen, samples=samples
        )

    def certificate(self) -> ssl.SSLContext | None:
        return certificate_of((self.tls_cert_file, _CERTIFICATE), (self.tls_private_key_file, _KEY))


def certificate_of(certificate: tuple[Path | None, str], key: tuple[Path | None, str]) -> ssl.SSLContext | None:
    """Both files with the names of their options; new connections get a renewed certificate. Raises UserError for files
    that are no certificate and its key."""
    if certificate[0] is None and key[0] is None:
        return None
    if certificate[0] is None or key[0] is None:
        missing = certificate[1] if certificate[0] is None else key[1]
        raise UserError("is missing", where=Where(path=missing), fix=f"give {certificate[1]} and {key[1]}")
    from shoal.cli.web_certificates import renewed_context

    try:
        return renewed_context(certificate[0], key[0])
    except (OSError, ssl.SSLError) as error:
        what = f"the certificate cannot be read: {error}"
        raise UserError(what, where=Where(file=str(certificate[0]))) from None


@with_options
def web(options: WebOptions, cluster_access: AccessOptions, logs: LoggingOptions) -> None:
    """Serve pages about the cluster to browsers: fleet, queues, workloads, costs and alerts, as they change.

    Nothing can be changed with these pages.
    """
    from shoal.cli.addressed_commands import cluster_flags
    from shoal.cli.web_runs import WebRun, serve_cluster
    from shoal.web.server import WebSettings, trusted_proxies

    if options.host is not None:
        check_listening(options.host, Where(path=_HOST))
    certificate = options.certificate()
    logs.set_up()
    access = cluster_access.access()
    announce(access)
    if options.host not in (None, _LOOPBACK, "localhost", "::1") and certificate is None:
        what = f"tokens are sent without encryption: give {_CERTIFICATE} and {_KEY}, or use a proxy with HTTPS"
        typer.echo(f"shoal: warning: {what}", err=True)
    settings = WebSettings(
        options.host or _LOOPBACK,
        options.port,
        certificate=certificate,
        trusted_proxies=trusted_proxies(options.trusted_proxy or (), Where(path=_PROXY)),
    )
    flags = tuple(cluster_flags(cluster_access, access))
    run = WebRun(settings, options.host is not None, flags, options.further(access))
    if options.table:
        from shoal.cli.web_table import print_table

        print_table(access, run, options.table)
        return
    serve_cluster(access, run, lambda url: typer.echo(f"{url}  Ctrl-C ends this.", err=True))
