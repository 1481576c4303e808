"""Implements `shoal agent validate`: tests the layers below a GPU container."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.agent_options import FakeMachine
from shoal.cli.formats import TEXTS, TextOutput, checked
from shoal.cli.known_names import check_known
from shoal.units.errors import Where


def validate(
    *,
    layers: Annotated[
        str, typer.Option("--layers", metavar="LAYERS", help="Which, of driver, devices, toolkit, plugin and cuda.")
    ] = "driver,devices,toolkit,plugin,cuda",
    fake: FakeMachine = "",
    output: TextOutput = TEXTS[0],
) -> None:
    """Test the layers below a GPU container, and name the first one that fails.

    Exit code 1 if a layer fails.
    """
    checked(output, TEXTS)
    from shoal.agent.patient_driver import PatientDriver
    from shoal.agent.validator.cuda_process import run_cuda
    from shoal.agent.validator.layers import LAYERS, LayerResult, Validation
    from shoal.wiring.gpu_driver import open_driver

    wanted = [word.strip() for word in layers.split(",")]
    for word in wanted:
        check_known(word, LAYERS, "layer", Where(path="--layers"))
    validation = Validation(lambda: PatientDriver(lambda: open_driver(fake)), run_cuda, is_simulated=bool(fake))
    results: list[LayerResult] = []
    for result in validation.run(wanted):
        results.append(result)
        if output == TEXTS[0]:
            # Each at once, because the next one can take long.
            fix = f"; {result.fix}" if result.fix else ""
            typer.echo(f"{result.layer:<8} {result.state:<8} {result.message}{fix}")
    if output != TEXTS[0]:
        from shoal.cli.formats import write

        write(results, output)
    if any(result.state == "failed" for result in results):
        raise typer.Exit(1)
