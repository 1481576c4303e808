"""Chooses the cluster of a command and runs the command on it: connect, work, close, one line if it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from shoal.cli.cluster_folder import cluster_folder
from shoal.cli.exit_codes import FAILED

if TYPE_CHECKING:
    from shoal.client.http.access import Access
    from shoal.client.port import Api

T = TypeVar("T")
_PATIENCE_S = 20.0
"""The time limit of one answer, for which a user waits."""
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="The kubeconfig file; by default that of `shoal up` if it runs, else the one that kubectl would use.",
    ),
]
KubeContext = Annotated[
    str, typer.Option("--context", metavar="NAME", help="The context of the kubeconfig; by default the current one.")
]


def chosen_access(kubeconfig: Path | None, context: str) -> Access:
    from shoal.client.http.locate import locate
    from shoal.embedded.apiserver.security.kubeconfig import NAME
    from shoal.embedded.apiserver.security.state_folder import running

    if kubeconfig is None and not context:
        own = running(cluster_folder(None))
        if own is not None:
            # The file may be shared with other clusters, and another context current in it by now.
            return locate(Path(own.kubeconfig), NAME)
    return locate(kubeconfig, context)


def speak(access: Access, work: Callable[[Api], Awaitable[T]]) -> T:
    """Returns the result of `work`. A refusal of the server, or no server, is one line and exit code 1."""
    import random

    from shoal.client.http.api import KubeApi
    from shoal.client.http.settings import KubeSettings

    async def spoken() -> T:
        api = KubeApi(access, random.Random(), KubeSettings(timeout_s=_PATIENCE_S))
        try:
            return await work(api)
        finally:
            await api.close()

    return ended(access, spoken)


def ended(access: Access, work: Callable[[], Awaitable[T]]) -> T:
    async def awaited() -> T:
        return await work()

    with in_one_line(access):
        return asyncio.run(awaited())


@contextmanager
def in_one_line(access: Access) -> Iterator[None]:
    """Turns a refusal of the server, or a missing server, into one line and exit code 1."""
    from shoal.client.refusals import BusyError, RefusedError

    try:
        yield
    except (BusyError, RefusedError) as error:
        typer.echo(f"shoal: {access.where}: {error}", err=True)
        raise typer.Exit(FAILED) from None
