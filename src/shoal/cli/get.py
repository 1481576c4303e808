"""`shoal get`: lists of what schedulers and queues deal in: gangs, queues, workloads, nodes.

Beside `kubectl get`, which shows objects: a gang may be a PodGroup of four projects, a Job with an annotation or some
pods with a label, and none of them says what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.cluster_access import Kubeconfig, KubeContext
from shoal.cli.completion_values import namespaces
from shoal.cli.formats import FOR_PROGRAMS, TABLES, TableOutput, checked
from shoal.cli.named_nodes import Machines
from shoal.cli.object_source import Files

if TYPE_CHECKING:
    from rich.console import Console

    from shoal.cli.object_source import Source

    Draw = Callable[[Console, bool], None]
    """As a table; the second is whether it may be wide."""

app = typer.Typer(help="List gangs, queues, workloads or nodes, with what they wait for.", no_args_is_help=True)
_TABLE = TABLES[0]
Namespace = Annotated[
    str,
    typer.Option(
        "-n",
        "--namespace",
        metavar="NAME",
        help="Only objects in this namespace; by default in all.",
        autocompletion=namespaces,
    ),
]


def _gangs(source: Source, _: Sequence[str] | None, namespace: str) -> tuple[Any, Draw]:
    """List gangs: which run, which wait and why; of all namespaces unless one is named."""
    from shoal.cli.overview import gangs_of_source
    from shoal.views.gang_list import show_gangs

    found = [each for each in gangs_of_source(source) if _is_in(each.gang, namespace)]
    return found, lambda console, is_wide: show_gangs(console, found, is_wide=is_wide)


def _queues(source: Source, filename: Sequence[str] | None, namespace: str) -> tuple[Any, Draw]:
    """List local queues with their cluster queues, cohorts, who waits in them and what they use."""
    from shoal.cli.queue_lists import queue_lines
    from shoal.views.queue_list import show_queues

    found = [each for each in queue_lines(source, filename) if _is_in(each.queue, namespace)]
    return found, lambda console, is_wide: show_queues(console, found, is_wide=is_wide)


def _workloads(source: Source, filename: Sequence[str] | None, namespace: str) -> tuple[Any, Draw]:
    """List workloads: who holds quota, who waits for it, and what would become of each by quota alone."""
    from shoal.cli.queue_lists import workloads_listed
    from shoal.views.queue_workloads import show_workloads

    listed = workloads_listed(source, filename, namespace)
    return listed, lambda console, _: show_workloads(console, listed)


def _nodes(source: Source, *_: object) -> tuple[Any, Draw]:
    """List nodes with their GPUs, those in trouble first, then those with most to give."""
    from shoal.cli.overview import top_of_source
    from shoal.views.top_text import show_nodes

    found = top_of_source(source).nodes
    return found, lambda console, is_wide: show_nodes(console, found, None, is_wide=is_wide)


def _command(listed: Callable[[Source, Sequence[str] | None, str], tuple[Any, Draw]]) -> Callable[..., None]:
    def command(
        filename: Files = None,
        nodes: Machines = None,
        namespace: Namespace = "",
        output: TableOutput = _TABLE,
        kubeconfig: Kubeconfig = None,
        context: KubeContext = "",
    ) -> None:
        from shoal.cli.formats import console, write
        from shoal.cli.object_source import source_of

        checked(output, TABLES)
        document, draw = listed(
            source_of(filename, kubeconfig, context, nodes=nodes, reads_pods=listed in (_gangs, _nodes)),
            filename,
            namespace,
        )
        if output in FOR_PROGRAMS:
            write(document, output)
        else:
            draw(console(), output == "wide")

    command.__doc__ = listed.__doc__
    return command


for _name, _listed in (("gangs", _gangs), ("queues", _queues), ("workloads", _workloads)):
    app.command(_name)(_command(_listed))


@app.command("nodes", help=_nodes.__doc__)
def nodes(
    filename: Files = None,
    nodes: Machines = None,
    output: TableOutput = _TABLE,
    kubeconfig: Kubeconfig = None,
    context: KubeContext = "",
) -> None:
    """Nodes have no namespace."""
    _command(_nodes)(filename, nodes, "", output, kubeconfig, context)


def _is_in(key: str, namespace: str) -> bool:
    return not namespace or key.startswith(f"{namespace}/")
