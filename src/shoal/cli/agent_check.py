"""Implements `shoal agent check`: the GPUs of this machine, with their readings and faults."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.agent_options import FakeMachine
from shoal.cli.formats import TEXTS, TextOutput, checked

if TYPE_CHECKING:
    from shoal.agent.health.kernel_log import LoggedXid


def check(
    *,
    fake: FakeMachine = "",
    kernel_log: Annotated[
        str, typer.Option("--kernel-log", metavar="FILE", help="Where Xids are looked for; empty: nowhere.")
    ] = "/dev/kmsg",
    output: TextOutput = TEXTS[0],
) -> None:
    """Print the GPUs of this machine, with their readings and faults.

    Exit code 1 if a GPU is unhealthy or does not respond.
    """
    checked(output, TEXTS)
    from shoal.agent.node_report import node_report, report_text
    from shoal.agent.patient_driver import PatientDriver
    from shoal.wiring.gpu_driver import open_driver

    driver = PatientDriver(lambda: open_driver(fake))
    try:
        report = node_report(driver, _logged("" if fake and kernel_log == "/dev/kmsg" else kernel_log))
    finally:
        driver.close()
    if output != TEXTS[0]:
        from shoal.cli.formats import write

        write(report, output)
    else:
        typer.echo("\n".join(report_text(report)))
    if not report.is_healthy:
        raise typer.Exit(1)


def _logged(path: str) -> tuple[LoggedXid, ...]:
    """None of a log that this user may not read, with a warning: the rest of the report is still of use."""
    from shoal.agent.health.kernel_log import logged_xids

    if not path:
        return ()
    try:
        return logged_xids(Path(path))
    except OSError as error:
        typer.echo(
            f"shoal: warning: {path}: the kernel log was not read: {error.strerror or error}; run as root to read it",
            err=True,
        )
        return ()
