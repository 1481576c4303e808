"""Implements `shoal agent check`: the GPUs of this machine, with their readings and faults."""

from __future__ import annotations

import typer

from shoal.cli.agent_options import FakeMachine
from shoal.cli.formats import TEXTS, TextOutput, checked


def check(*, fake: FakeMachine = "", output: TextOutput = TEXTS[0]) -> None:
    """Print the GPUs of this machine, with their readings and faults.

    Exit code 1 if a GPU does not respond.
    """
    checked(output, TEXTS)
    from shoal.agent.node_report import node_report, report_text
    from shoal.wiring.gpu_driver import open_driver

    driver = open_driver(fake)
    try:
        report = node_report(driver)
    finally:
        driver.close()
    if output != TEXTS[0]:
        from shoal.cli.formats import write

        write(report, output)
    else:
        typer.echo("\n".join(report_text(report)))
    if report.lost:
        raise typer.Exit(1)
