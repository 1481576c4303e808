"""Implements `shoal scale plan|pools`: reads a cluster or files, asks for the decision, and prints it.

Guarantees: nothing is changed; with `-o json` or `-o yaml` stdout holds one document and nothing else; a pool that
cannot be read is named on stderr, and the others are planned.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.formats import FOR_PROGRAMS, TABLES, TEXTS, TableOutput, TextOutput, checked
from shoal.cli.list_options import NoHeaders
from shoal.cli.object_source import Files
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from shoal.cli.object_source import Source
    from shoal.store.node_planning import NodeScaling
    from shoal.views.scale_plan import PoolView

_SEED = 42

InstanceTypeFile = Annotated[
    Path | None,
    typer.Option(
        "--instance-types",
        metavar="FILE",
        help="The instance types with capacity, labels and offerings, as JSON or YAML; by default the table of "
        "machines with GPUs.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    filename: Files = None
    instance_types: InstanceTypeFile = None
    no_removal: Annotated[bool, typer.Option("--no-removal", help="Only tell which nodes would be provisioned.")] = (
        False
    )
    spot_to_spot: Annotated[
        bool, typer.Option("--spot-to-spot", help="Also replace spot nodes by cheaper spot nodes.")
    ] = False
    ignore_preferences: Annotated[
        bool, typer.Option("--ignore-preferences", help="Plan by what pods require, and not by what they prefer.")
    ] = False
    output: TextOutput = TEXTS[0]


@with_options
def plan(options: PlanOptions, access: AccessOptions) -> None:
    """Tell which nodes would be provisioned or removed now, at which price, and why; nothing is changed.

    The scheduler decides first: pods that fit on nodes of the cluster, and pods that a queue holds, need no node.
    Nodes are only removed in a plan that provisions none.
    """
    checked(options.output, TEXTS)
    from shoal.cli.object_source import source_from
    from shoal.cli.scale_documents import plan_document
    from shoal.views.scale_text import show_plan

    source = source_from(options.filename, access)
    found = plan_document(_decided(source, options))
    if options.output in FOR_PROGRAMS:
        from shoal.cli.formats import write

        write(found, options.output, source.cluster)
        return
    from shoal.cli.formats import console

    show_plan(console(), found)


@dataclass(frozen=True, kw_only=True)
class PoolsOptions:
    filename: Files = None
    instance_types: InstanceTypeFile = None
    output: TableOutput = TABLES[0]
    no_headers: NoHeaders = False


@with_options
def pools(options: PoolsOptions, access: AccessOptions) -> None:
    """List node pools with their nodes, price, limits, and why a pool can serve no pod."""
    checked(options.output, TABLES)
    from shoal.cli.object_source import source_from
    from shoal.views.scale_text import show_pools

    source = source_from(options.filename, access)
    found = pools_of(source, options.instance_types)
    if options.output in FOR_PROGRAMS:
        from shoal.cli.formats import write

        write({"kind": "List", "items": found}, options.output, source.cluster)
        return
    from shoal.cli.formats import console

    show_pools(console(), found, has_headings=not options.no_headers)
    from shoal.cli.scale_forecast import buffer_lines

    for line in buffer_lines(source):
        typer.echo(line)


def pools_of(source: Source, instance_types: Path | None = None, *, warns: bool = True) -> list[PoolView]:
    """The pools with their nodes, price and limits."""
    from shoal.cli.scale_documents import pool_documents

    return pool_documents(_decided(source, PlanOptions(instance_types=instance_types), warns=warns))


def _decided(source: Source, options: PlanOptions, *, warns: bool = True) -> NodeScaling:
    from shoal.api.run_configuration import RunConfiguration
    from shoal.cli.instance_type_file import types_of_file
    from shoal.cli.manifest_errors import report_errors
    from shoal.cli.manifests import rounds_of, warn
    from shoal.cli.preemption_options import policy_of_rules, rules_in_use, steps_of_rules, without_configuration
    from shoal.cli.scale_documents import held_texts, scaling_options, waiting_pods
    from shoal.sim.node_scaling import decided_scaling

    own = rules_in_use(source.documents)
    rules = own or RunConfiguration()
    # A cluster is decided about as `shoal run` does it there; files with a configuration as it says.
    steps = steps_of_rules(rules) if source.access is not None or own is not None else None
    types_of = None if options.instance_types is None else types_of_file(options.instance_types)
    loaded = source.taken()
    rounds = rounds_of(loaded, _SEED, steps=steps)
    rounds.victim_policy = policy_of_rules(rules.preemption)
    decided = decided_scaling(
        source.documents,
        rounds,
        waiting_pods(source.documents, loaded),
        held_texts(loaded),
        scaling_options(
            source,
            loaded,
            types_of,
            spot_to_spot=options.spot_to_spot,
            removes=not options.no_removal,
            ignores_preferences=options.ignore_preferences,
        ),
    )
    if not warns:
        return decided
    # The kinds that only node planning reads are not read by the scheduler.
    warnings = [each for each in loaded.warnings if not each.startswith("not read, because")]
    warn([*without_configuration(warnings, own), *decided.objects.warnings])
    report_errors(decided.objects.errors)
    return decided
