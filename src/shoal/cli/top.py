"""Implements `shoal top`: prints nodes, their GPUs, the holders, and the fragmentation, for a live cluster or files.

With `--watch` it shows the dashboard of the cluster.
"""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.cluster_access import Kubeconfig, KubeContext
from shoal.cli.formats import FOR_PROGRAMS, TABLES, TableOutput, checked
from shoal.cli.named_nodes import Machines
from shoal.cli.object_source import Files

Watch = Annotated[
    bool,
    typer.Option("--watch", "-w", help="Show the cluster as it changes: a dashboard with keys; ? explains them."),
]


def top(
    filename: Files = None,
    nodes: Machines = None,
    output: TableOutput = TABLES[0],
    kubeconfig: Kubeconfig = None,
    context: KubeContext = "",
    watch: Watch = False,
) -> None:
    """Show what the GPUs are doing: per model, per holder, per node, and how much of what is free is fragments."""
    checked(output, TABLES)
    if watch:
        from shoal.cli.cluster_access import chosen_access
        from shoal.cli.dashboard_runs import watch_cluster
        from shoal.cli.foreground import wants_dashboard
        from shoal.units.errors import UserError

        if filename or output != TABLES[0]:
            option = "--filename" if filename else "--output"
            raise UserError(f"{option} does not go with --watch", fix="leave out one of the two")
        watch_cluster(chosen_access(kubeconfig, context), is_drawn=wants_dashboard(None))
        return
    from shoal.cli.formats import console, write
    from shoal.cli.object_source import source_of
    from shoal.cli.overview import top_of_source
    from shoal.views.top_text import show_top

    found = top_of_source(source_of(filename, kubeconfig, context, nodes=nodes))
    if output in FOR_PROGRAMS:
        write(found, output)
        return
    show_top(console(), found, is_wide=output == "wide")
