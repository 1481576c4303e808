"""Implements `shoal top`: prints nodes, their GPUs, the holders, and the fragmentation, for a live cluster or files."""

from __future__ import annotations

from shoal.cli.cluster_access import Kubeconfig, KubeContext
from shoal.cli.formats import FOR_PROGRAMS, TABLES, TableOutput, checked
from shoal.cli.named_nodes import Machines
from shoal.cli.object_source import Files


def top(
    filename: Files = None,
    nodes: Machines = None,
    output: TableOutput = TABLES[0],
    kubeconfig: Kubeconfig = None,
    context: KubeContext = "",
) -> None:
    """Show what the GPUs are doing: per model, per holder, per node, and how much of what is free is fragments."""
    checked(output, TABLES)
    from shoal.cli.formats import console, write
    from shoal.cli.object_source import source_of
    from shoal.cli.overview import top_of_source
    from shoal.views.top_text import show_top

    found = top_of_source(source_of(filename, kubeconfig, context, nodes=nodes))
    if output in FOR_PROGRAMS:
        write(found, output)
        return
    show_top(console(), found, is_wide=output == "wide")
