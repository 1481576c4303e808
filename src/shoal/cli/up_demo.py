"""`shoal up --demo`: a fleet at work, kept nowhere. A dashboard on a terminal, else lines for a minute.

It has a folder, a port and a kubeconfig of its own, so that it does not affect the cluster in use, and kubectl can
read it while it runs.
"""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shoal.cli.embedded_options import EmbeddedOptions
from shoal.cli.foreground import log_into, run_in, wants_dashboard
from shoal.cli.log_options import LoggingOptions

if TYPE_CHECKING:
    from shoal.cli.dashboard import LiveDashboard
    from shoal.embedded.apiserver.settings import Settings
    from shoal.wiring.process_tasks import ProcessTasks
    from shoal.wiring.up import Show

_SEED = 42


def run_demo(
    port: int, speed: float, logs: LoggingOptions, *, dashboard: bool | None, pages: socket.socket | None = None
) -> None:
    """`pages`: the socket of the web dashboard; None without one."""
    from shoal.cli.cluster_folder import history_folder
    from shoal.cli.progress import step
    from shoal.cli.web_beside import PagesBeside, address_of
    from shoal.embedded.apiserver.settings import Settings
    from shoal.embedded.demo.arrivals import NODES
    from shoal.wiring.up import up

    is_drawn = wants_dashboard(dashboard)
    with tempfile.TemporaryDirectory(prefix="shoal-demo-") as folder:
        if is_drawn:
            log_into(Path(folder), logs)
        settings = Settings(None, Path(folder) / "kubeconfig", port=port)
        options = EmbeddedOptions(nodes=NODES, speed=speed, metrics_port=0).to_cluster_options(None, Path(folder))
        dashboards: list[LiveDashboard] = []

        async def show(tasks: ProcessTasks, stop: Callable[[], None]) -> None:
            footer = f"export KUBECONFIG={settings.kubeconfig}" + (f"   {address_of(pages)}" if pages else "")
            await _show(tasks, stop, footer, dashboards, is_drawn)

        shown: Show = show
        if pages is not None:
            history = history_folder(Path(folder))
            shown = PagesBeside(settings.kubeconfig, history, is_usual=False).show(pages, show)

        def serve(settings: Settings, ready: Callable[[str], None]) -> None:
            def also(url: str) -> None:
                ready(url)
                if pages is not None:
                    step(f"pages: {address_of(pages)}")

            up(settings, options, also, shown)

        run_in(Path(folder), settings, serve)
    for one in dashboards:
        _say_summary(one)


async def _show(
    tasks: ProcessTasks, stop: Callable[[], None], footer: str, dashboards: list[LiveDashboard], is_drawn: bool
) -> None:
    import asyncio

    from shoal.cli.dashboard import LiveDashboard
    from shoal.cli.dashboard_runs import print_lines, show_on_terminal
    from shoal.embedded.demo.arrivals import LENGTH_S
    from shoal.embedded.demo.play import play

    dashboard = LiveDashboard(tasks.informers, tasks.clock, "Shoal demo", footer)
    dashboards.append(dashboard)
    playing = asyncio.ensure_future(play(tasks.api, tasks.clock, _SEED))
    try:
        if is_drawn:
            await show_on_terminal(dashboard, tasks.api)
        else:
            drawing = asyncio.ensure_future(print_lines(dashboard, tasks.api, typer.echo))
            await tasks.clock.sleep(LENGTH_S)
            drawing.cancel()
        stop()
    finally:
        playing.cancel()
        # Up to the last moment.
        dashboard.scene()


def _say_summary(dashboard: LiveDashboard) -> None:
    from shoal.cli.formats import console

    out = console()
    out.print()
    out.print(dashboard.account.table())
    out.print(f"\n{dashboard.account.words()}")
