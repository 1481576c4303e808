"""Implements `shoal queue`: prints the quota tree, and what would change under other quotas.

Guarantees: with `-o json` or `-o yaml` stdout holds one document and nothing else; warnings go to stderr.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.command_help import HelpCommand
from shoal.cli.completion_values import cluster_queues, one_of
from shoal.cli.formats import FOR_PROGRAMS, TABLES, SummaryOutput, TableOutput, checked
from shoal.cli.list_options import AllNamespaces, NoHeaders
from shoal.cli.named_group import NamedGroup
from shoal.cli.named_nodes import Machines
from shoal.cli.object_source import Files, Namespace
from shoal.cli.option_groups import with_options
from shoal.cli.options import Seed
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shoal.cli.list_output import OutputForm
    from shoal.cli.object_source import Source
    from shoal.views.other_queues import OtherQueue
    from shoal.views.queue_tree import Tree, TreeNode
    from shoal.views.queue_waits import QueueWaits
    from shoal.views.queue_workloads import Workloads

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Show quotas, their use, and the workloads that wait for them.",
    cls=NamedGroup,
    subcommand_metavar="[NAME] | COMMAND [ARGS]...",
)

_Two = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--filename",
        metavar="PATH",
        help="Given twice, first for the manifests as they are, then as proposed: a file, a folder, or -.",
    ),
]
_TABLE = TABLES[0]


@dataclass(frozen=True, kw_only=True)
class QueueOptions:
    name: Annotated[
        str,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Only this cohort, cluster queue or local queue.",
            autocompletion=cluster_queues,
        ),
    ] = ""
    filename: Files = None
    nodes: Machines = None
    namespace: Namespace = ""
    output: SummaryOutput = _TABLE
    workloads: Annotated[
        bool,
        typer.Option("--workloads", help="Also list workloads that hold quota, and those that wait, with reasons."),
    ] = False
    all_namespaces: AllNamespaces = False
    selector: Annotated[
        str,
        typer.Option(
            "--selector", "-l", metavar="LABELS", help="Only cluster queues and local queues with these labels: team=a."
        ),
    ] = ""
    sort_by: Annotated[
        str,
        typer.Option("--sort-by", metavar="JSONPATH", help="The field to sort queues by: .name, .waiting.workloads."),
    ] = ""
    no_headers: NoHeaders = False
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="After the queues, print them again when they have changed.")
    ] = False


@app.callback(invoke_without_command=True)
@with_options
def queue(called: typer.Context, options: QueueOptions, access: AccessOptions) -> None:
    """Show the quota tree: nominal, used, borrowed, lent, waiting, share.

    With the NAME of a cohort, cluster queue or local queue only that part, and its workloads. Queues of Volcano and KAI
    are listed below the tree.
    """
    if called.invoked_subcommand is not None:
        if options != QueueOptions() or access != AccessOptions():
            raise UserError("options of a command stand behind its name", where=Where(path="shoal queue"))
        return
    from shoal.cli.list_output import summary_form
    from shoal.cli.object_source import source_from

    form = replace(
        summary_form(options.output, "shoal queue", "queues", options.sort_by), has_headings=not options.no_headers
    )
    if options.watch:
        from shoal.cli.list_watch import watch_text

        if options.filename:
            raise UserError("files do not change", where=Where(path="--watch"), fix="leave out --filename")
        watch_text(access, lambda source: _write(source.in_namespace(options.namespace), options, form))
        return
    source = source_from(options.filename, access, options.namespace, nodes=options.nodes, reads_pods=False)
    _write(source, options, form)


def _write(source: Source, options: QueueOptions, form: OutputForm) -> None:
    from shoal.cli.manifests import warn
    from shoal.cli.other_queues import named, other_queues_in_use, other_queues_of
    from shoal.cli.queue_lists import reasons_of, waits_of
    from shoal.cli.queue_manifests import are_queues, queues_of
    from shoal.cli.queue_selection import QueueObjects, QueueSelection
    from shoal.sim.queued_world import kueue_of
    from shoal.views.queue_backlog import waiters_of
    from shoal.views.queue_part import part_of, workloads_in
    from shoal.views.queue_tree import Tree, queue_tree
    from shoal.views.queue_workloads import workloads_of

    chosen = QueueSelection(QueueObjects(source.documents), options.selector, form.sort_by)
    namespace = "" if options.all_namespaces else source.namespace
    of_name = named(other_queues_of(source), options.name) if options.name else other_queues_in_use(source)
    of_name = chosen.others(of_name)
    if of_name and (options.name or not are_queues(source.documents)):
        _show(Tree([]), None, form, of_name, source.cluster)
        return
    if not are_queues(source.documents) and source.access is not None and not options.name:
        if not form.is_table:
            _show(Tree([]), None, form, (), source.cluster)
        what = "no queues found; create a ClusterQueue of Kueue, or a queue of Volcano or KAI"
        typer.echo(f"no queues with the labels {options.selector} found" if options.selector else what, err=True)
        return
    manifests = queues_of(source.documents, options.filename or [source.words])
    if options.filename:
        warn(manifests.warnings)
    kueue = kueue_of(manifests, manifests.now_s)
    waiters = waiters_of(kueue, {facts.key: facts for facts in manifests.workloads})
    tree = queue_tree(kueue.queues, waiters)
    listed = None
    if options.workloads or options.name or form.name == "wide":
        listed = workloads_of(kueue.queues.held.values(), waiters, reasons_of(source, manifests))
    if options.name:
        part = part_of(tree, options.name, namespace, is_only=bool(namespace and options.namespace))
        tree = Tree([part.shown])
        listed = None if listed is None else workloads_in(listed, part.meant)
    tree = chosen.tree(tree)
    if options.selector and not tree.all_roots and not of_name and form.is_table:
        typer.echo(f"no queues with the labels {options.selector} found", err=True)
        return
    listed = None if listed is None else chosen.workloads(listed, tree)
    waits = None
    if form.name == "wide" or not form.is_table:
        waits = waits_of(source.documents)
        waits = waits.of(tree.cluster_queues) if options.name or options.selector else waits
    _show(tree, listed, form, of_name, source.cluster, waits)


def _show(
    tree: Tree,
    listed: Workloads | None,
    form: OutputForm,
    others: Sequence[OtherQueue] = (),
    cluster: str = "",
    waits: QueueWaits | None = None,
) -> None:
    from shoal.cli.formats import console, with_cluster

    if form.name == "name":
        names = [*_names([*tree.roots, *tree.astray]), *(f"queue/{each.queue}" for each in others)]
        typer.echo("".join(f"{name}\n" for name in names), nl=False)
        return
    if not form.is_table:
        import msgspec

        from shoal.cli.list_output import write_document

        document = msgspec.to_builtins(tree)
        document |= {} if listed is None else {"workloads": msgspec.to_builtins(listed)}
        document |= {} if waits is None else msgspec.to_builtins(waits)
        document |= {"others": msgspec.to_builtins(others)} if others else {}
        write_document(with_cluster(document, cluster), form)
        return
    from shoal.views.other_queues import show_other_queues
    from shoal.views.queue_text import show_tree
    from shoal.views.queue_waits import show_waits
    from shoal.views.queue_workloads import show_workloads

    screen = console(has_headings=form.has_headings)
    has_tree = bool(tree.all_roots) or not others
    if has_tree:
        show_tree(screen, tree)
    if listed is not None:
        show_workloads(screen, listed)
    if waits is not None:
        show_waits(screen, waits)
    show_other_queues(screen, others, is_first=not has_tree and listed is None)


def _names(nodes: Sequence[TreeNode]) -> Iterator[str]:
    """Of the tree from the top: cohort/x, clusterqueue/x, localqueue/team-a/x."""
    for node in nodes:
        yield f"{node.kind.lower()}/{node.name}"
        yield from _names(node.children)


@app.command("diff", cls=HelpCommand)
def diff(filename: _Two = None, output: TableOutput = _TABLE, seed: Seed = 42) -> None:
    """Tell who would start, stop or wait longer: -f NOW -f PROPOSED, each a file or a folder.

    Where PROPOSED holds queues, flavors and their like alone, they replace those of NOW by kind and name.
    """
    checked(output, TABLES)
    from shoal.cli.formats import console, write
    from shoal.cli.progress import long_work, terminal_step
    from shoal.cli.queue_manifests import futures_of
    from shoal.sim.queue_diff import compare

    with long_work("simulating both quotas", terminal_step):
        (now, before), (proposed, after) = futures_of(filename or [], seed)
        comparison = compare(now, proposed, before, after)
    if output in FOR_PROGRAMS:
        write(comparison, output)
        return
    from shoal.views.queue_diff import show_comparison

    show_comparison(console(), comparison)


_Project = Annotated[
    str,
    typer.Option(
        "--to", metavar="PROJECT", help="kueue, kai or volcano.", autocompletion=one_of(("kueue", "kai", "volcano"))
    ),
]
_LocalNamespace = Annotated[
    str,
    typer.Option("--namespace", "-n", metavar="NAME", help="Where local queues of Kueue are made for queues without."),
]


@app.command("convert", cls=HelpCommand)
def convert(to: _Project, filename: Files = None, namespace: _LocalNamespace = "default") -> None:
    """Write the queues of -f PATH as the nearest equivalents of another project, as YAML.

    Warnings on standard error say what the other project cannot express.
    """
    from shoal.cli.known_names import check_known
    from shoal.cli.queue_conversion import PROJECTS
    from shoal.cli.queue_conversion import convert as write_converted

    check_known(to, PROJECTS, "project", Where(path="--to"))
    if not filename:
        raise UserError("is missing", where=Where(path="--filename"), fix="name the manifests with the queues: -f PATH")
    write_converted(filename, to, namespace)
