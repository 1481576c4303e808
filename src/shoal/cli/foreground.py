"""Runs a server in the foreground: claims its folder, reports when it is ready, and keeps its log off the terminal."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shoal.cli.cluster_folder import cluster_folder

if TYPE_CHECKING:
    from shoal.cli.log_options import LoggingOptions
    from shoal.embedded.apiserver.settings import Settings

Serve = Callable[["Settings", Callable[[str], None]], None]


def run_in(folder: Path, settings: Settings, serve: Serve, notify: int | None = None) -> None:
    """Run the server in this folder until it ends; `notify` is a file descriptor to report readiness on."""
    from shoal.embedded.apiserver.security.state_folder import Running, claim

    with claim(folder) as claimed:

        def ready(url: str) -> None:
            kubeconfig, fault = str(settings.kubeconfig), settings.joining_fault
            claimed.announce(Running(os.getpid(), url, kubeconfig, settings.kube_version, fault))
            if notify is not None:
                os.write(notify, b"ready\n")
                os.close(notify)
                return
            typer.echo(export_line(settings.kubeconfig))
            typer.echo(f"Kubernetes {settings.kube_version} API at {url}; Ctrl-C ends it.", err=True)
            sys.stdout.flush()

        serve(settings, ready)
    if notify is None:
        typer.echo(end_line(folder, settings), err=True)


def end_line(folder: Path, settings: Settings) -> str:
    """The last line on the terminal. Without it that would be the `export` of a cluster that no longer runs."""
    start = "shoal up" if folder == cluster_folder(None) else f"shoal up --state {shlex.quote(str(folder))}"
    again = "its objects are lost" if settings.state_dir is None else f"`{start}` starts it again with its objects"
    left = f"KUBECONFIG, if it was exported as {settings.kubeconfig}, points to a cluster that does not run"
    return f"the cluster has ended; {again}. {left}: unset KUBECONFIG"


def export_line(kubeconfig: Path) -> str:
    return f"export KUBECONFIG={shlex.quote(str(kubeconfig))}"


def wants_dashboard(chosen: bool | None) -> bool:
    return chosen if chosen is not None else sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def log_into(folder: Path, logs: LoggingOptions) -> None:
    """Log to a file in the folder: the dashboard covers the terminal."""
    from shoal.embedded.apiserver.private_files import make_private_folder
    from shoal.embedded.apiserver.security.state_folder import LOG

    make_private_folder(folder)
    logs.set_up(folder / LOG)


def ready_reporter(words: Callable[[str], str], notify: int | None) -> Callable[[str], None]:
    """Reports readiness to the parent process by the file descriptor `notify`, or to the user in a line."""

    def ready(what: str) -> None:
        if notify is None:
            typer.echo(words(what), err=True)
            return
        os.write(notify, b"ready\n")
        os.close(notify)

    return ready
