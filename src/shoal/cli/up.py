"""`shoal up`: start the embedded control plane, in the foreground or on its own.

Standard output has exactly one line, `export KUBECONFIG=...`, printed when the server answers; so
`eval "$(shoal up --detach)"` is all a shell needs. Everything else goes to standard error.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_folder import StateFolder, cluster_folder

if TYPE_CHECKING:
    from shoal.cluster.settings import Settings

_PORT = 6443


class KubeVersion(StrEnum):
    """What `--kube-version` may be; settings.KUBE_VERSIONS is held against this by a test."""

    OLDEST = "1.34"
    OLDER = "1.35"
    NEWEST = "1.36"


class Authorization(StrEnum):
    ALWAYS_ALLOW = "always-allow"
    RBAC = "rbac"


def up(
    state: StateFolder = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 takes any free port.")] = _PORT,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Listen here instead of on loopback.")] = "127.0.0.1",
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return once the cluster is ready.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Keep objects in memory: they end with the server.")] = False,
    kube_version: Annotated[
        KubeVersion, typer.Option(help="Whose schemas and `/version` are served.")
    ] = KubeVersion.NEWEST,
    authorization: Annotated[
        Authorization, typer.Option(help="Whether RBAC is enforced for users other than the administrator.")
    ] = Authorization.ALWAYS_ALLOW,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Merge the context `shoal` into this file.")
    ] = None,
    history_events: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many changes watches can go on from, at most.")
    ] = 100_000,
    history_seconds: Annotated[int, typer.Option(min=1, metavar="S", help="And for how long.")] = 300,
    notify: Annotated[int | None, typer.Option("--notify-fd", hidden=True)] = None,
) -> None:
    """Start a Kubernetes API server on this machine, with nothing to install."""
    from shoal.cluster.security.state_folder import KUBECONFIG
    from shoal.cluster.settings import Settings

    folder = cluster_folder(state)
    settings = Settings(
        state_dir=None if memory else folder,
        kubeconfig=(kubeconfig.expanduser().absolute() if kubeconfig else folder / KUBECONFIG),
        host=host,
        port=port,
        kube_version=kube_version.value,
        authorization=authorization.value,
        history_events=history_events,
        history_s=history_seconds,
    )
    if detach:
        from shoal.cli.detach import start_detached

        typer.echo(_export(start_detached(folder, settings)))
        return

    from shoal.cluster.server.run import serve

    run_in(folder, settings, serve, notify)


Serve = Callable[["Settings", Callable[[str], None]], None]


def run_in(folder: Path, settings: Settings, serve: Serve, notify: int | None = None) -> None:
    """Run the server in this folder until it ends; `notify` is a file descriptor to report readiness on."""
    from shoal.cluster.security.state_folder import Running, claim

    with claim(folder) as claimed:

        def ready(url: str) -> None:
            claimed.announce(Running(os.getpid(), url, str(settings.kubeconfig), settings.kube_version))
            if notify is not None:
                os.write(notify, b"ready\n")
                os.close(notify)
                return
            typer.echo(_export(settings.kubeconfig))
            typer.echo(f"Kubernetes {settings.kube_version} API at {url}; Ctrl-C ends it.", err=True)
            sys.stdout.flush()

        serve(settings, ready)


def _export(kubeconfig: Path) -> str:
    return f"export KUBECONFIG={shlex.quote(str(kubeconfig))}"
