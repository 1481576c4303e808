"""`shoal get`: lists of what schedulers and queues deal in: gangs, queues, workloads, nodes.

Beside `kubectl get`, which shows objects: a gang may be a PodGroup of four projects, a Job with an annotation or some
pods with a label, and what it waits for stands in none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.cluster_access import Kubeconfig, KubeContext
from shoal.cli.formats import FOR_PROGRAMS, TABLES, TableOutput, checked
from shoal.cli.living import Files, Namespace

if TYPE_CHECKING:
    from shoal.cli.living import Source

app = typer.Typer(help="List gangs, queues, workloads or nodes, with what they wait for.", no_args_is_help=True)
_TABLE = TABLES[0]


@app.command("gangs")
def gangs(
    filename: Files = None,
    namespace: Namespace = "",
    output: TableOutput = _TABLE,
    kubeconfig: Kubeconfig = None,
    context: KubeContext = "",
) -> None:
    """List gangs: which run, which wait and why; of all namespaces unless one is named."""
    from shoal.cli.formats import console
    from shoal.cli.overview import gangs_of_source
    from shoal.views.gang_list import show_gangs

    found = gangs_of_source(_read(output, filename, kubeconfig, context))
    found = [each for each in found if _is_in(each.gang, namespace)]
    if not _is_written(found, output):
        show_gangs(console(), found, is_wide=output == "wide")


@app.command("queues")
def queues(
    filename: Files = None,
    namespace: Namespace = "",
    output: TableOutput = _TABLE,
    kubeconfig: Kubeconfig = None,
    context: KubeContext = "",
) -> None:
    """List local queues with their cluster queues, cohorts, who waits in them and what they use."""
    from shoal.cli.formats import console
    from shoal.cli.queue_lists import queue_lines
    from shoal.views.queue_list import show_queues

    source = _read(output, filename, kubeconfig, context)
    found = [each for each in queue_lines(source, filename) if _is_in(each.queue, namespace)]
    if not _is_written(found, output):
        show_queues(console(), found, is_wide=output == "wide")


@app.command("workloads")
def workloads(
    filename: Files = None,
    namespace: Namespace = "",
    output: TableOutput = _TABLE,
    kubeconfig: Kubeconfig = None,
    context: KubeContext = "",
) -> None:
    """List workloads: who holds quota, who waits for it, and what would become of each by quota alone."""
    from shoal.cli.formats import console
    from shoal.cli.queue_lists import workloads_listed
    from shoal.views.queue_workloads import show_workloads

    listed = workloads_listed(_read(output, filename, kubeconfig, context), filename, namespace)
    if not _is_written(listed, output):
        show_workloads(console(), listed)


@app.command("nodes")
def nodes(
    filename: Files = None,
    output: TableOutput = _TABLE,
    kubeconfig: Kubeconfig = None,
    context: KubeContext = "",
) -> None:
    """List nodes with their GPUs, those in trouble first, then those with most to give."""
    from shoal.cli.formats import console
    from shoal.cli.overview import top_of_source
    from shoal.views.top_text import show_nodes

    found = top_of_source(_read(output, filename, kubeconfig, context)).nodes
    if not _is_written(found, output):
        show_nodes(console(), found, None, is_wide=output == "wide")


def _read(output: str, filename: Sequence[str] | None, kubeconfig: Path | None, context: str) -> Source:
    checked(output, TABLES)
    from shoal.cli.living import source_of

    return source_of(filename, kubeconfig, context)


def _is_in(key: str, namespace: str) -> bool:
    return not namespace or key.startswith(f"{namespace}/")


def _is_written(document: Any, output: str) -> bool:
    """For programs, if they asked."""
    if output not in FOR_PROGRAMS:
        return False
    from shoal.cli.formats import write

    write(document, output)
    return True
