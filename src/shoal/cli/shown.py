"""The board beside a running server: drawn on the terminal until the server ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.wiring.process_tasks import ProcessTasks
    from shoal.wiring.up import Show


def shown_live(kubeconfig: Path) -> Show:
    async def show(life: ProcessTasks, _: Callable[[], None]) -> None:
        from rich.console import Console

        from shoal.cli.board import LiveBoard

        board = LiveBoard(life.informers, life.clock, f"export KUBECONFIG={kubeconfig}   Ctrl-C ends it")
        await board.draw(Console(highlight=False))

    return show
