"""Implements `shoal top`: prints nodes, their GPUs, the holders, and the fragmentation, for a live cluster or files.

With `--watch` it shows the dashboard of the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.formats import TABLES, SummaryOutput
from shoal.cli.list_options import HolderScope, NoHeaders
from shoal.cli.named_nodes import Machines
from shoal.cli.object_source import Files
from shoal.cli.option_groups import with_options

_TABLE = TABLES[0]


class UsedResource(StrEnum):
    GPU = "gpu"
    CPU = "cpu"
    MEMORY = "memory"


@dataclass(frozen=True, kw_only=True)
class TopOptions:
    filename: Files = None
    nodes: Machines = None
    output: SummaryOutput = _TABLE
    selector: Annotated[
        str, typer.Option("--selector", "-l", metavar="LABELS", help="Only nodes with these labels, and their holders.")
    ] = ""
    sort_by: Annotated[
        UsedResource | None,
        typer.Option(
            "--sort-by", metavar="RESOURCE", help="gpu, cpu or memory: nodes of which most is used come first."
        ),
    ] = None
    no_headers: NoHeaders = False
    watch: Annotated[
        bool,
        typer.Option("--watch", "-w", help="Show the cluster as it changes: a dashboard with keys; ? explains them."),
    ] = False

    def check_watch(self) -> None:
        """Raises UserError for options that the dashboard does not have."""
        from shoal.units.errors import UserError

        for option, is_given in {
            "--filename": bool(self.filename),
            "--nodes": bool(self.nodes),
            "--output": self.output != _TABLE,
        }.items():
            if is_given:
                raise UserError(f"{option} does not go with --watch", fix="leave out one of the two")
        for option, is_given in {"--selector": bool(self.selector), "--sort-by": self.sort_by is not None}.items():
            if is_given:
                fix = "leave it out: in the dashboard / filters rows and s sorts them"
                raise UserError(f"{option} does not go with --watch", fix=fix)


@with_options
def top(options: TopOptions, scope: HolderScope, access: AccessOptions) -> None:
    """Show what the GPUs are doing: per model, per holder, per node, and how much of what is free is fragments."""
    from shoal.cli.list_output import summary_form, write_document

    form = summary_form(options.output, "shoal top", "nodes")
    if options.watch:
        from shoal.cli.dashboard_runs import watch_cluster
        from shoal.cli.foreground import wants_dashboard

        options.check_watch()
        namespace = "" if scope.all_namespaces else scope.namespace
        watch_cluster(access.access(), namespace, is_drawn=wants_dashboard(None))
        return
    from msgspec import structs

    from shoal.cli.formats import console, with_cluster
    from shoal.cli.object_source import source_from
    from shoal.cli.overview import top_of_source
    from shoal.views.top import most_used_first
    from shoal.views.top_text import show_top

    source = source_from(options.filename, access, nodes=options.nodes)
    found = top_of_source(source, options.selector)
    found = structs.replace(found, holders=[each for each in found.holders if scope.has(each.name)])
    if options.sort_by is not None:
        found = structs.replace(found, nodes=most_used_first(found.nodes, options.sort_by.value))
    if options.selector and not found.nodes and form.is_table:
        typer.echo(f"no nodes with the labels {options.selector} found", err=True)
        return
    if form.name == "name":
        typer.echo("".join(f"node/{node.name}\n" for node in found.nodes), nl=False)
    elif form.is_table:
        show_top(console(has_headings=not options.no_headers), found, is_wide=form.name == "wide")
    else:
        write_document(with_cluster(found, source.cluster), form)
