"""Implements `shoal agent validate`: tests the layers below a GPU container."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.agent_options import FakeMachine
from shoal.cli.formats import TEXTS, TextOutput, checked
from shoal.cli.known_names import check_known
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.agent.validator.layers import LayerResult, Validation
    from shoal.agent.validator.ready_files import Pause


@dataclass(frozen=True, kw_only=True)
class ReadyOptions:
    """For pods of a GPU operator, whose init containers wait for the layers below."""

    wait: Annotated[bool, typer.Option("--wait", help="Test again every 5 seconds until no layer fails.")] = False
    watch: Annotated[
        bool, typer.Option("--watch", help="Test again until Ctrl-C; results are printed when they change.")
    ] = False
    wait_for: Annotated[
        str,
        typer.Option("--wait-for", metavar="LAYERS", help="Test nothing; wait until --ready-dir has their files."),
    ] = ""
    ready_dir: Annotated[
        Path | None,
        typer.Option("--ready-dir", metavar="DIR", help="A folder in which a file marks each layer that works."),
    ] = None
    driver_install_dir: Annotated[
        str,
        typer.Option(
            "--driver-install-dir",
            metavar="DIR",
            envvar="DRIVER_INSTALL_DIR",
            help="Where the driver container installs the driver on the host; it is in the file of the driver.",
        ),
    ] = "/run/nvidia/driver"


@with_options
def validate(
    *,
    layers: Annotated[
        str, typer.Option("--layers", metavar="LAYERS", help="Which, of driver, devices, toolkit, plugin and cuda.")
    ] = "driver,devices,toolkit,plugin,cuda",
    fake: FakeMachine = "",
    output: TextOutput = TEXTS[0],
    ready: ReadyOptions,
) -> None:
    """Test the layers below a GPU container, and name the first one that fails.

    Exit code 1 if a layer fails.
    """
    checked(output, TEXTS)
    from shoal.agent.patient_driver import PatientDriver
    from shoal.agent.validator.cuda_process import run_cuda
    from shoal.agent.validator.layers import Validation
    from shoal.wiring.gpu_driver import open_driver

    if ready.wait_for:
        _wait_for(ready)
        return
    wanted = _layers(layers, "--layers")
    validation = Validation(lambda: PatientDriver(lambda: open_driver(fake)), run_cuda, is_simulated=bool(fake))
    if ready.wait or ready.watch:
        _repeat(validation, wanted, ready)
        return
    results: list[LayerResult] = []
    for result in validation.run(wanted):
        results.append(result)
        if output == TEXTS[0]:
            # Each at once, because the next one can take long.
            _show((result,))
    if output != TEXTS[0]:
        from shoal.cli.formats import write

        write(results, output)
    if ready.ready_dir is not None:
        from shoal.agent.validator.ready_files import ReadyFiles

        ReadyFiles(ready.ready_dir, ready.driver_install_dir).take(results, wanted)
    if any(result.state == "failed" for result in results):
        raise typer.Exit(1)


def _layers(text: str, option: str) -> list[str]:
    from shoal.agent.validator.layers import LAYERS

    wanted = [word.strip() for word in text.split(",")]
    for word in wanted:
        check_known(word, LAYERS, "layer", Where(path=option))
    return wanted


def _show(results: Sequence[LayerResult]) -> None:
    for result in results:
        fix = f"; {result.fix}" if result.fix else ""
        typer.echo(f"{result.layer:<8} {result.state:<8} {result.message}{fix}")


def _wait_for(ready: ReadyOptions) -> None:
    from shoal.agent.validator.ready_files import ReadyFiles, wait_for_files

    layers = _layers(ready.wait_for, "--wait-for")
    if ready.ready_dir is None:
        raise UserError("needs a folder", where=Where(path="--wait-for"), fix="name it with --ready-dir")
    if not wait_for_files(layers, ReadyFiles(ready.ready_dir), _pause(), typer.echo):
        raise typer.Exit(1)


def _repeat(validation: Validation, wanted: list[str], ready: ReadyOptions) -> None:
    from shoal.agent.validator.ready_files import ReadyFiles, validate_repeatedly

    files = ReadyFiles(ready.ready_dir, ready.driver_install_dir) if ready.ready_dir is not None else None

    def take(results: Sequence[LayerResult]) -> None:
        if files is not None:
            files.take(results, wanted)

    is_good = validate_repeatedly(lambda: list(validation.run(wanted)), take, _pause(), _show, is_endless=ready.watch)
    if not is_good and not ready.watch:
        raise typer.Exit(1)


def _pause() -> Pause:
    """Waits until the time is over or a signal asks the process to end."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop.wait
