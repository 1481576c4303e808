"""Implements `shoal get`: lists pods, gangs, queues, workloads and nodes, with the conventions of `kubectl get`.

Beside `kubectl get`, which shows objects: a gang may be a PodGroup of four projects, a Job with an annotation or some
pods with a label, and what it waits for is in none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.completion_values import listed_names
from shoal.cli.list_options import ListOptions
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where, excerpt

if TYPE_CHECKING:
    from shoal.api.decode import Document
    from shoal.cli.list_output import Listing, OutputForm
    from shoal.cli.listed_types import ListedType
    from shoal.cli.object_source import Source


@with_options
def get(
    called: typer.Context,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TYPE [NAME...]",
            help="pods, gangs, queues, workloads or nodes, and the names of some of them; or TYPE/NAME.",
            show_default=False,
            autocompletion=listed_names,
        ),
    ] = None,
    *,
    options: ListOptions,
    access: AccessOptions,
) -> None:
    """List pods, gangs, queues, workloads or nodes, with what they wait for.

    The types have the short names po, pg, q, wl and no. Without --namespace or --all-namespaces the list has the
    objects in the namespace of the context. With --filename it has the objects of all namespaces.
    """
    if not what:
        typer.echo(called.get_help())
        return
    from shoal.cli.list_output import form_of, write_listing
    from shoal.cli.object_source import source_from

    form = form_of(options.output, options.sort_by, has_headings=not options.no_headers)
    of, names = _asked(what)
    if options.watch:
        from shoal.cli.list_watch import watch

        if options.filename:
            raise UserError("files do not change", where=Where(path="--watch"), fix="leave out --filename")
        watch(access, form, lambda source: _listing(of, names, source, options, form))
        return
    source = source_from(options.filename, access, options.namespace, nodes=options.nodes, reads_pods=of.reads_pods)
    listing = _listing(of, names, source, options, form)
    if not listing.rows and form.is_table:
        typer.echo(_nothing(of, source, options), err=True)
        return
    write_listing(listing, form)


def _asked(what: Sequence[str]) -> tuple[ListedType, list[str]]:
    """`TYPE`, `TYPE NAME...` or `TYPE/NAME...`; all of one type."""
    from shoal.cli.listed_types import type_named

    word, slash, name = what[0].partition("/")
    if "," in word:
        raise UserError(f"{excerpt(word)} are several types", fix="one type can be listed at a time")
    of = type_named(word)
    if not slash:
        return of, [name.removeprefix(f"{word}/") for name in what[1:]]
    names = [name]
    for more in what[1:]:
        kind, slash, name = more.partition("/")
        if not slash or type_named(kind) is not of:
            raise UserError(
                f"{excerpt(more)} is not {of.singular}/NAME", fix="names of one type can be listed at a time"
            )
        names.append(name)
    return of, names


def _listing(of: ListedType, names: Sequence[str], source: Source, options: ListOptions, form: OutputForm) -> Listing:
    from shoal.cli.list_output import Listing
    from shoal.cli.row_documents import sorted_by

    rows = of.rows(source)
    objects = of.objects(source)
    if names:
        rows = list(_named(of, names, rows, source, options))
    elif namespace := _namespace(of, source, options):
        rows = [row for row in rows if _is_in(of.key(row), namespace)]
    if options.selector:
        rows = list(_selected(of, rows, source, options.selector))
    if options.field_selector:
        rows = list(_with_fields(of, rows, objects, options.field_selector))
    if form.sort_by:
        rows = sorted_by(form.sort_by, of, rows, objects)
    return Listing(of, rows, source.cluster, is_one=len(names) == 1, objects=objects)


def _namespace(of: ListedType, source: Source, options: ListOptions) -> str:
    """The namespace that is listed; empty: all. Files have no context, so that all of their namespaces are listed."""
    if options.all_namespaces or not of.is_namespaced:
        return ""
    return options.namespace or ("" if source.access is None else source.namespace)


def _is_in(key: str, namespace: str) -> bool:
    """Objects without a namespace are in every list, such as queues of Volcano."""
    return "/" not in key or key.startswith(f"{namespace}/")


def _named(
    of: ListedType, names: Sequence[str], rows: Sequence[Any], source: Source, options: ListOptions
) -> Iterator[Any]:
    import difflib

    namespace = _namespace(of, source, options)
    by_key = {of.key(row): row for row in rows}
    for name in names:
        key = name if name in by_key else f"{namespace}/{name}"
        in_all = [key for key in by_key if key.rpartition("/")[2] == name] if not namespace else []
        if key in by_key:
            yield by_key[key]
        elif in_all:
            yield from (by_key[key] for key in in_all)
        else:
            near = difflib.get_close_matches(name, [key.removeprefix(f"{namespace}/") for key in by_key], 3)
            fix = f"did you mean {' or '.join(near)}?" if near else f"see shoal get {of.plural} -A"
            where = f" in namespace {namespace}" if namespace and "/" not in name else ""
            raise UserError(f"{of.singular} {excerpt(name)} not found{where}", fix=fix)


def _selected(of: ListedType, rows: Sequence[Any], source: Source, text: str) -> Iterator[Any]:
    from shoal.api.selector_text import parse_label_selector

    selector = parse_label_selector(text)
    labels = of.labels(source)
    return (row for row in rows if selector.matches(labels.get(of.key(row), {})))


def _with_fields(of: ListedType, rows: Sequence[Any], objects: Mapping[str, Document], text: str) -> Iterator[Any]:
    from shoal.api.field_selectors import parse_field_selector
    from shoal.cli.row_documents import object_of_row

    selector = parse_field_selector(text, of.head[1])
    return (row for row in rows if selector.matches(object_of_row(of, row, objects)))


def _nothing(of: ListedType, source: Source, options: ListOptions) -> str:
    namespace = _namespace(of, source, options)
    if options.selector:
        return f"no {of.plural} with the labels {options.selector} found"
    if options.field_selector:
        return f"no {of.plural} with {options.field_selector} found"
    if not namespace:
        return f"no {of.plural} found"
    return f"no {of.plural} found in namespace {namespace}; -A lists those of all namespaces"
