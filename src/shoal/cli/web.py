"""Implements `shoal web`: serves pages about a cluster to browsers, until Ctrl-C; nothing can be changed with them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.cluster_access import AccessOptions, announce
from shoal.cli.log_options import LoggingOptions
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where
from shoal.units.listening import check_listening

_PORT = 8090
_LOOPBACK = "127.0.0.1"
_HOST, _CERTIFICATE, _KEY = "--host", "--tls-cert-file", "--tls-private-key-file"


@dataclass(frozen=True, kw_only=True)
class WebOptions:
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

    def certificate(self) -> ssl.SSLContext | None:
        """Raises UserError for files that are no certificate and its key."""
        if self.tls_cert_file is None and self.tls_private_key_file is None:
            return None
        if self.tls_cert_file is None or self.tls_private_key_file is None:
            missing = _CERTIFICATE if self.tls_cert_file is None else _KEY
            raise UserError("is missing", where=Where(path=missing), fix=f"give {_CERTIFICATE} and {_KEY}")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.tls_cert_file, self.tls_private_key_file)
        except (OSError, ssl.SSLError) as error:
            what = f"the certificate cannot be read: {error}"
            raise UserError(what, where=Where(file=str(self.tls_cert_file))) from None
        return context


@with_options
def web(options: WebOptions, cluster_access: AccessOptions, logs: LoggingOptions) -> None:
    """Serve pages about the cluster to browsers: the fleet, queues, workloads and nodes, as they change.

    Nothing can be changed with these pages.
    """
    from shoal.cli.addressed_commands import cluster_flags
    from shoal.cli.web_runs import WebRun, serve_cluster
    from shoal.web.server import WebSettings

    if options.host is not None:
        check_listening(options.host, Where(path=_HOST))
    certificate = options.certificate()
    logs.set_up()
    access = cluster_access.access()
    announce(access)
    if options.host not in (None, _LOOPBACK, "localhost", "::1") and certificate is None:
        what = f"tokens are sent without encryption: give {_CERTIFICATE} and {_KEY}, or use a proxy with HTTPS"
        typer.echo(f"shoal: warning: {what}", err=True)
    settings = WebSettings(options.host or _LOOPBACK, options.port, certificate=certificate)
    run = WebRun(settings, options.host is not None, tuple(cluster_flags(cluster_access, access)))
    serve_cluster(access, run, lambda url: typer.echo(f"{url}  Ctrl-C ends this.", err=True))
