"""Runs work on an installation: a client with the installer's field manager, a clock, and the version of the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import typer

from shoal.cli.cluster_access import ended
from shoal.cli.exit_codes import FAILED
from shoal.units.visible_text import visible

if TYPE_CHECKING:
    from shoal.client.http.access import Access
    from shoal.install.preflight.facts import Finding
    from shoal.wiring.installation.cluster_writer import ClusterWriter

T = TypeVar("T")
_PATIENCE_S = 30.0


def installing(access: Access, work: Callable[[ClusterWriter, str], Awaitable[T]]) -> T:
    """Calls `work` with the writer and the version of the server. A stage that is not ready ends the command with one
    line."""
    import random
    import time

    import msgspec

    from shoal.client.clock import LoopClock
    from shoal.client.http.api import KubeApi
    from shoal.client.http.connection import Connection
    from shoal.client.http.settings import KubeSettings
    from shoal.install.release import FIELD_MANAGER
    from shoal.wiring.installation.cluster_writer import ClusterWriter
    from shoal.wiring.installation.stage_waits import NotReadyError

    settings = KubeSettings(manager=FIELD_MANAGER, timeout_s=_PATIENCE_S)

    async def worked() -> T:
        connection = Connection(access, settings)
        try:
            version = msgspec.json.decode(await connection.ask("GET", "/version"), type=dict[str, str])
        finally:
            await connection.close()
        api = KubeApi(access, random.Random(), settings)
        try:
            writer = ClusterWriter(api, LoopClock(time.time()))
            return await work(writer, version.get("gitVersion", ""))
        finally:
            await api.close()

    try:
        return ended(access, worked)
    except NotReadyError as error:
        typer.echo(f"shoal: {visible(str(error))}", err=True)
        raise typer.Exit(FAILED) from None


def progress_line(text: str) -> None:
    typer.echo(visible(text), err=True)


def show_findings(findings: tuple[Finding, ...] | list[Finding]) -> None:
    for one in findings:
        typer.echo(f"{one.level}: {visible(str(one))}", err=True)
