"""Implements `shoal top`: prints nodes, their GPUs, the holders, and the fragmentation, for a live cluster or files.

With `--watch` it shows the dashboard of the cluster, or the tables again where an option says how they look.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.formats import TABLES, SummaryOutput
from shoal.cli.list_options import HolderScope, NoHeaders
from shoal.cli.named_nodes import Machines
from shoal.cli.object_source import Files
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from shoal.cli.list_output import OutputForm
    from shoal.cli.object_source import Source

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
        typer.Option(
            "--watch",
            "-w",
            help="Show the cluster as it changes: a dashboard with keys; ? explains them. With -o, -l, --sort-by or "
            "--no-headers: the tables again, when they have changed.",
        ),
    ] = False

    def check_watch(self) -> None:
        """Raises UserError for options about objects that do not change."""
        from shoal.units.errors import UserError

        for option, is_given in {"--filename": bool(self.filename), "--nodes": bool(self.nodes)}.items():
            if is_given:
                raise UserError(f"{option} does not go with --watch", fix="leave out one of the two")

    @property
    def has_tables(self) -> bool:
        """Whether an option is given that the dashboard does not have."""
        return self.output != _TABLE or bool(self.selector) or self.sort_by is not None or self.no_headers


@with_options
def top(options: TopOptions, scope: HolderScope, access: AccessOptions) -> None:
    """Show what the GPUs are doing: per model, per holder, per node, and how much of what is free is fragments."""
    from shoal.cli.list_output import summary_form

    form = summary_form(options.output, "shoal top", "nodes")
    if options.watch:
        from shoal.cli.dashboard_runs import watch_cluster
        from shoal.cli.foreground import wants_dashboard
        from shoal.cli.list_watch import watch_text

        options.check_watch()
        if options.has_tables:
            watch_text(access, lambda source: _write(source, options, scope, form))
            return
        namespace = "" if scope.all_namespaces else scope.namespace
        watch_cluster(access.access(), namespace, is_drawn=wants_dashboard(None))
        return
    from shoal.cli.object_source import source_from

    _write(source_from(options.filename, access, nodes=options.nodes), options, scope, form)


def _write(source: Source, options: TopOptions, scope: HolderScope, form: OutputForm) -> None:
    from msgspec import structs

    from shoal.cli.formats import console, with_cluster
    from shoal.cli.list_output import write_document
    from shoal.cli.overview import top_of_source
    from shoal.views.top import most_used_first
    from shoal.views.top_text import show_top

    found = top_of_source(source, options.selector)
    found = structs.replace(found, holders=[each for each in found.holders if scope.has(each.name)])
    if options.sort_by is not None:
        found = structs.replace(found, nodes=most_used_first(found.nodes, options.sort_by.value))
    if options.selector and not found.nodes and form.is_table:
        # Of a watch, text on standard output is printed once.
        typer.echo(f"no nodes with the labels {options.selector} found", err=not options.watch)
        return
    if form.name == "name":
        typer.echo("".join(f"node/{node.name}\n" for node in found.nodes), nl=False)
    elif form.is_table:
        show_top(console(has_headings=not options.no_headers), found, is_wide=form.name == "wide")
    else:
        write_document(with_cluster(found, source.cluster), form)
