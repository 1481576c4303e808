"""Implements `shoal pack`: compares how much of a fleet each policy fills, by the protocol of the FGD evaluation.

Guarantees: with `-o json` stdout holds the array and nothing else; `--plot` leaves a whole picture or none, and an
impossible path is refused before any work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.completion_values import policy_lists
from shoal.cli.formats import FOR_PROGRAMS, TABLES, AsJson, TableOutput, checked, write
from shoal.cli.option_groups import with_options
from shoal.cli.options import MAX_SEED

if TYPE_CHECKING:
    from shoal.cli.policy_comparison import Result
    from shoal.cli.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    nodes: Annotated[
        Path | None, typer.Option(metavar="N.csv", help="The fleet; without files a synthetic one is made.")
    ] = None
    pods: Annotated[Path | None, typer.Option(metavar="P.csv", help="The pods to place on it.")] = None
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME[,NAME...]", help="Policies to compare, or `all` of them.", autocompletion=policy_lists
        ),
    ] = "Shoal"
    load: Annotated[float, typer.Option(help="GPU request to reach, as a multiple of the fleet's GPUs.")] = 1.3
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Draws the arrival order and the ties.")] = 42
    order: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A recorded order (gzip of 16-bit integers); --load is not used then."),
    ] = None
    scheduler_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration; its profiles are compared as well."),
    ] = None
    output: TableOutput = TABLES[0]
    as_json: AsJson = False
    plot: Annotated[
        Path | None, typer.Option(metavar="OUT.svg", help="Write a picture of all policies to this file.")
    ] = None


@with_options
def pack(options: PackOptions) -> None:
    """Pack a pod list onto a fleet under one or more policies and compare what they reach."""
    from shoal.cli.output_file import OutFile
    from shoal.cli.policy_names import parse_policies
    from shoal.sim.packing import POLICY_NAMES

    checked(options.output, (TABLES[0], *FOR_PROGRAMS))
    policies = parse_policies(options.policy, POLICY_NAMES)
    out = OutFile(options.plot, ".svg") if options.plot is not None else None

    from shoal.cli.policy_comparison import compare_policies, picture
    from shoal.cli.scenario import load_scenario
    from shoal.cli.scheduler_config import load_profiles

    builders = load_profiles(options.scheduler_config) if options.scheduler_config is not None else {}
    scenario = load_scenario(options.nodes, options.pods, options.order, options.load, options.seed)
    results = compare_policies(scenario, [*policies, *builders], builders)
    if out is not None:
        out.write(picture(scenario, results))
    form = "json" if options.as_json else options.output
    if form != TABLES[0]:
        write([document_of(result, scenario) for result in results], form)
    else:
        _show(scenario, results, options.plot)


def document_of(result: Result, scenario: Scenario) -> dict[str, Any]:
    return {
        "policy": result.policy,
        "seed": scenario.seed,
        "pods": len(scenario.arrivals.pod_rows),
        "seconds": round(result.seconds, 4),
        "alloc": _at_marks(result.curves.alloc),
        "frag_amount": _at_marks(result.curves.frag_amount),
        "frag_ratio": _at_marks(result.curves.frag_ratio),
    }


def _at_marks(curve: dict[int, float]) -> dict[str, float | None]:
    """Every mark is there; a load that never arrived is null, not a guess."""
    from shoal.sim.axis import MARKS

    return {str(mark): curve.get(mark) for mark in MARKS}


def _show(scenario: Scenario, results: Sequence[Result], plot: Path | None) -> None:
    from rich.console import Console

    from shoal.sim.axis import MARKS
    from shoal.views.packing_table import packing_table

    console = Console(highlight=False)
    console.print(scenario.words, style="dim", soft_wrap=True)
    console.print(packing_table([result.row for result in results], MARKS))
    if plot is not None:
        console.print(f"picture: {plot.resolve()}", markup=False, soft_wrap=True)
