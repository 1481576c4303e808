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

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.completion_values import policy_lists
from shoal.cli.formats import FOR_PROGRAMS, TABLES, AsJson, TableOutput, checked, write
from shoal.cli.option_groups import with_options
from shoal.cli.options import MAX_SEED
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.cli.policy_comparison import Result
    from shoal.cli.scenario import Scenario

_LOAD = 1.3


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    filename: Annotated[
        list[str] | None,
        typer.Option(
            "-f",
            "--filename",
            metavar="PATH",
            help="A snapshot or manifests whose pods are placed anew on their nodes; may be given several times.",
        ),
    ] = None
    live: Annotated[
        bool, typer.Option("--live", help="Place the pods of the cluster anew, on paper; nothing is changed there.")
    ] = False
    nodes: Annotated[
        str | None,
        typer.Option(
            metavar="N.csv|FLEET",
            help="The fleet; without files a synthetic one is made. With -f: machines instead of Node objects.",
        ),
    ] = None
    pods: Annotated[Path | None, typer.Option(metavar="P.csv", help="The pods to place on it.")] = None
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME[,NAME...]",
            help="Policies to compare, or `all` of them; by default Shoal, with -f all.",
            autocompletion=policy_lists,
        ),
    ] = ""
    load: Annotated[
        float | None,
        typer.Option(
            help="GPU request to reach by clones, as a multiple of the fleet's GPUs; by default 1.3, with -f no clones."
        ),
    ] = None
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

    @property
    def has_objects(self) -> bool:
        """Whether the pods are those of a cluster or of manifests, and not of a list."""
        return bool(self.filename) or self.live


@with_options
def pack(options: PackOptions, access: AccessOptions) -> None:
    """Pack a pod list onto a fleet under one or more policies and compare what they reach.

    With -f or --live the pods of a snapshot, of manifests or of the cluster are placed anew on its nodes, and compared
    with the present placement.
    """
    from shoal.cli.output_file import OutFile
    from shoal.cli.policy_names import parse_policies
    from shoal.sim.packing import POLICY_NAMES

    checked(options.output, (TABLES[0], *FOR_PROGRAMS))
    policies = parse_policies(options.policy or ("all" if options.has_objects else "Shoal"), POLICY_NAMES)
    if options.has_objects:
        _compare_placements(options, access, policies)
        return
    out = OutFile(options.plot, ".svg") if options.plot is not None else None

    from shoal.cli.policy_comparison import compare_policies, picture
    from shoal.cli.scenario import load_scenario
    from shoal.cli.scheduler_config import load_profiles

    builders = load_profiles(options.scheduler_config) if options.scheduler_config is not None else {}
    load = _LOAD if options.load is None else options.load
    nodes = None if options.nodes is None else Path(options.nodes)
    scenario = load_scenario(nodes, options.pods, options.order, load, options.seed)
    results = compare_policies(scenario, [*policies, *builders], builders)
    if out is not None:
        out.write(picture(scenario, results))
    form = "json" if options.as_json else options.output
    if form != TABLES[0]:
        write([document_of(result, scenario) for result in results], form)
    else:
        _show(scenario, results, options.plot)


def _compare_placements(options: PackOptions, access: AccessOptions, policies: Sequence[str]) -> None:
    _check_alone(options)
    from shoal.cli.object_source import source_from
    from shoal.cli.repack import compare_placements
    from shoal.cli.scheduler_config import load_profiles
    from shoal.sim.workload import check_load

    if options.load is not None:
        check_load(options.load)
    profiles = load_profiles(options.scheduler_config) if options.scheduler_config is not None else {}
    nodes = [options.nodes] if options.nodes is not None else None
    source = source_from(options.filename, access, nodes=nodes)
    comparison = compare_placements(source, [*policies, *profiles], profiles, options.seed, options.load)
    form = "json" if options.as_json else options.output
    if form != TABLES[0]:
        write(comparison, form)
        return
    from shoal.cli.formats import console
    from shoal.views.repacking import headline, repacking_table

    screen = console(is_folded=True)
    screen.print(headline(comparison), style="dim")
    screen.print(repacking_table(comparison.rows))
    screen.print()
    for line in comparison.conclusion:
        screen.print(line, markup=False)


def _check_alone(options: PackOptions) -> None:
    """Options that speak of lists have no meaning for objects."""
    named = {"--pods": options.pods, "--order": options.order, "--plot": options.plot}
    given = [name for name, value in named.items() if value is not None]
    if given:
        raise UserError("is not used with -f or --live", where=Where(path=given[0]), fix="leave it out")
    if options.filename and options.live:
        raise UserError("is not used with -f", where=Where(path="--live"), fix="give one of them")


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
    from shoal.cli.formats import console
    from shoal.sim.axis import MARKS
    from shoal.views.packing_table import packing_table

    screen = console(is_folded=True)
    screen.print(scenario.words, style="dim", soft_wrap=True)
    screen.print(packing_table([result.row for result in results], MARKS))
    if plot is not None:
        screen.print(f"picture: {plot.resolve()}", markup=False, soft_wrap=True)
