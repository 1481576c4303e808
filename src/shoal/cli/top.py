"""Implements `shoal top`: prints nodes, their GPUs, the holders, and the fragmentation, for a live cluster or files.

With `--watch` it shows the dashboard of the cluster.
"""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.formats import TABLES, SummaryOutput
from shoal.cli.list_options import HolderScope
from shoal.cli.named_nodes import Machines
from shoal.cli.object_source import Files
from shoal.cli.option_groups import with_options

Watch = Annotated[
    bool,
    typer.Option("--watch", "-w", help="Show the cluster as it changes: a dashboard with keys; ? explains them."),
]


@with_options
def top(
    filename: Files = None,
    nodes: Machines = None,
    output: SummaryOutput = TABLES[0],
    watch: Watch = False,
    *,
    scope: HolderScope,
    access: AccessOptions,
) -> None:
    """Show what the GPUs are doing: per model, per holder, per node, and how much of what is free is fragments."""
    from shoal.cli.list_output import summary_form, write_document

    form = summary_form(output, "shoal top", "nodes")
    if watch:
        from shoal.cli.dashboard_runs import watch_cluster
        from shoal.cli.foreground import wants_dashboard
        from shoal.units.errors import UserError

        others = {"--filename": bool(filename), "--nodes": bool(nodes), "--output": output != TABLES[0]}
        for option, is_given in others.items():
            if is_given:
                raise UserError(f"{option} does not go with --watch", fix="leave out one of the two")
        namespace = "" if scope.all_namespaces else scope.namespace
        watch_cluster(access.access(), namespace, is_drawn=wants_dashboard(None))
        return
    from msgspec import structs

    from shoal.cli.formats import console, with_cluster
    from shoal.cli.object_source import source_from
    from shoal.cli.overview import top_of_source
    from shoal.views.top_text import show_top

    source = source_from(filename, access, nodes=nodes)
    found = top_of_source(source)
    found = structs.replace(found, holders=[each for each in found.holders if scope.has(each.name)])
    if form.name == "name":
        typer.echo("".join(f"node/{node.name}\n" for node in found.nodes), nl=False)
    elif form.is_table:
        show_top(console(), found, is_wide=form.name == "wide")
    else:
        write_document(with_cluster(found, source.cluster), form)
