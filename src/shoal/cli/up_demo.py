"""`shoal up --demo`: a fleet at work, kept nowhere. A dashboard on a terminal, else lines for a minute.

It has a folder, a port and a kubeconfig of its own, so that it does not affect the cluster in use, and kubectl can
read it while it runs.
"""

from __future__ import annotations

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

_SEED = 42


def run_demo(port: int, speed: float, logs: LoggingOptions, *, dashboard: bool | None) -> None:
    from shoal.embedded.apiserver.settings import Settings
    from shoal.embedded.demo.arrivals import NODES
    from shoal.wiring.up import up

    is_drawn = wants_dashboard(dashboard)
    with tempfile.TemporaryDirectory(prefix="shoal-demo-") as folder:
        if is_drawn:
            log_into(Path(folder), logs)
        settings = Settings(None, Path(folder) / "kubeconfig", port=port)
        options = EmbeddedOptions(nodes=NODES, speed=speed, metrics_port=0).to_cluster_options()
        dashboards: list[LiveDashboard] = []

        async def show(tasks: ProcessTasks, stop: Callable[[], None]) -> None:
            await _show(tasks, stop, settings.kubeconfig, dashboards, is_drawn)

        def serve(settings: Settings, ready: Callable[[str], None]) -> None:
            up(settings, options, ready, show)

        run_in(Path(folder), settings, serve)
    for one in dashboards:
        _say_summary(one)


async def _show(
    tasks: ProcessTasks, stop: Callable[[], None], kubeconfig: Path, dashboards: list[LiveDashboard], is_drawn: bool
) -> None:
    import asyncio

    from shoal.cli.dashboard import LiveDashboard
    from shoal.cli.dashboard_runs import print_lines, show_on_terminal
    from shoal.embedded.demo.arrivals import LENGTH_S
    from shoal.embedded.demo.play import play

    dashboard = LiveDashboard(tasks.informers, tasks.clock, "Shoal demo", f"export KUBECONFIG={kubeconfig}")
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
