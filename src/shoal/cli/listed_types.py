"""The types that `shoal get` lists: their names, their rows, and how a table of them is drawn.

Guarantees: every type is listed in one way, so that selectors, formats and `--watch` work for all of them. Names are
those that kubectl accepts, where kubectl has the type.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from shoal.cli import type_names
from shoal.cli.type_names import TypeNames
from shoal.units.errors import UserError, excerpt

if TYPE_CHECKING:
    from rich.console import Console

    from shoal.api.decode import Document
    from shoal.cli.object_source import Source

Labels = Callable[["Source"], Mapping[str, Mapping[str, str]]]
Objects = Callable[["Source"], Mapping[str, "Document"]]


class ListedType(NamedTuple):
    names: TypeNames
    rows: Callable[[Source], Sequence[Any]]
    """Structs in the order of the table."""
    key: Callable[[Any], str]
    """The name of a row, as namespace/name where it has a namespace."""
    labels: Labels
    """Labels of all objects, by the names of rows."""
    draw: Callable[[Console, Sequence[Any], bool, int | None], None]
    """The third is whether all columns are wanted, the fourth the number of rows at most."""
    objects: Objects
    """The objects of rows, by the names of rows."""
    head: tuple[str, str]
    """apiVersion and kind of a row without an object."""
    is_namespaced: bool = True
    reads_pods: bool = True
    """Whether the pods of files are judged too, and not queues alone."""

    @property
    def singular(self) -> str:
        return self.names.singular

    @property
    def plural(self) -> str:
        return self.names.plural


def _gangs(source: Source) -> Sequence[Any]:
    from shoal.cli.overview import gangs_of_source

    return gangs_of_source(source)


def _draw_gangs(console: Console, rows: Sequence[Any], is_wide: bool, most: int | None) -> None:
    from shoal.views.gang_list import show_gangs

    show_gangs(console, rows, is_wide=is_wide, most=most)


def _queues(source: Source) -> Sequence[Any]:
    from shoal.cli.queue_lists import queue_lines

    return queue_lines(source)


def _draw_queues(console: Console, rows: Sequence[Any], is_wide: bool, most: int | None) -> None:
    from shoal.views.queue_list import show_queues

    show_queues(console, rows, is_wide=is_wide, most=most)


def _workloads(source: Source) -> Sequence[Any]:
    from shoal.cli.queue_lists import workload_lines

    return workload_lines(source)


def _draw_workloads(console: Console, rows: Sequence[Any], is_wide: bool, most: int | None) -> None:
    from shoal.views.workload_list import show_workload_list

    show_workload_list(console, rows, is_wide=is_wide, most=most)


def _nodes(source: Source) -> Sequence[Any]:
    from shoal.cli.overview import top_of_source

    return top_of_source(source).nodes


def _draw_nodes(console: Console, rows: Sequence[Any], is_wide: bool, _: int | None) -> None:
    from shoal.views.top_text import show_nodes

    show_nodes(console, rows, None, is_wide=is_wide)


def _pods(source: Source) -> Sequence[Any]:
    from shoal.cli.listed_pods import pods_of_source

    return pods_of_source(source)


def _draw_pods(console: Console, rows: Sequence[Any], is_wide: bool, most: int | None) -> None:
    from shoal.views.pod_list import show_pods

    show_pods(console, rows, is_wide=is_wide, most=most)


def _labels_of(*kinds: str) -> Labels:
    def labels(source: Source) -> dict[str, Mapping[str, str]]:
        from shoal.cli.object_labels import labels_of

        return labels_of(source.documents, kinds)

    return labels


def _objects_of(*kinds: str) -> Objects:
    def objects(source: Source) -> Mapping[str, Document]:
        from shoal.cli.object_labels import objects_of

        return objects_of(source.documents, kinds)

    return objects


def _objects_of_gangs(source: Source) -> Mapping[str, Document]:
    from shoal.cli.object_labels import objects_of_gangs

    return objects_of_gangs(source)


def _labels_of_gangs(source: Source) -> Mapping[str, Mapping[str, str]]:
    from shoal.cli.object_labels import labels_of_gangs

    return labels_of_gangs(source)


TYPES = (
    ListedType(
        type_names.PODS,
        _pods,
        lambda row: str(row.pod),
        _labels_of("Pod"),
        _draw_pods,
        _objects_of("Pod"),
        ("v1", "Pod"),
    ),
    ListedType(
        type_names.GANGS,
        _gangs,
        lambda row: str(row.gang),
        _labels_of_gangs,
        _draw_gangs,
        _objects_of_gangs,
        ("shoal.dev/v1alpha1", "Gang"),
    ),
    ListedType(
        type_names.QUEUES,
        _queues,
        lambda row: str(row.queue),
        _labels_of("LocalQueue", "Queue"),
        _draw_queues,
        _objects_of("LocalQueue", "Queue"),
        ("kueue.x-k8s.io/v1beta2", "LocalQueue"),
        reads_pods=False,
    ),
    ListedType(
        type_names.WORKLOADS,
        _workloads,
        lambda row: str(row.workload),
        _labels_of("Workload"),
        _draw_workloads,
        _objects_of("Workload"),
        ("kueue.x-k8s.io/v1beta2", "Workload"),
        reads_pods=False,
    ),
    ListedType(
        type_names.NODES,
        _nodes,
        lambda row: str(row.name),
        _labels_of("Node"),
        _draw_nodes,
        _objects_of("Node"),
        ("v1", "Node"),
        is_namespaced=False,
    ),
)


def type_named(word: str) -> ListedType:
    """Raises UserError with the nearest type for an unknown one."""
    small = word.partition(".")[0].lower()
    for each in TYPES:
        if small in each.names.all:
            return each
    near = difflib.get_close_matches(small, [name for each in TYPES for name in each.names.all], 1)
    known = ", ".join(each.plural for each in TYPES)
    fix = f"did you mean {near[0]}?" if near else f"shoal get lists {known}; `kubectl get` shows other objects"
    raise UserError(f"type {excerpt(word)} not found", fix=fix)
