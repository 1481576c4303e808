"""Selects the queues of `shoal queue` by labels, and sorts them.

Guarantees: a cluster queue with the labels is shown with all its local queues, a local queue with the labels below its
cluster queue, which has the quota. Sorting changes the order of queues with one parent and keeps the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from shoal.api.decode import Document, meta_of
from shoal.api.selector_text import parse_label_selector
from shoal.cli.object_labels import objects_of
from shoal.cli.row_documents import check_paths, order_of, plain_metadata
from shoal.views.other_queues import OtherQueue
from shoal.views.queue_tree import Tree, TreeNode
from shoal.views.queue_workloads import Workloads

_KINDS = {"cohort": "Cohort", "clusterQueue": "ClusterQueue", "localQueue": "LocalQueue"}
_OTHER = "Queue"
_SORT_BY = "--sort-by"


class QueueObjects:
    """The objects of queues, by kind and name."""

    def __init__(self, documents: Iterable[Document]) -> None:
        kept = list(documents)
        self._by_kind: Mapping[str, Mapping[str, Document]] = {
            kind: objects_of(kept, (kind,)) for kind in (*_KINDS.values(), _OTHER)
        }

    def labels(self, queue: TreeNode | OtherQueue) -> Mapping[str, str]:
        found = self._of(queue)
        return {} if found is None else meta_of(found.value).labels

    def document(self, queue: TreeNode | OtherQueue) -> dict[str, Any]:
        """For paths: the fields of the queue and the metadata of its object."""
        found = self._of(queue)
        metadata = {"name": _name(queue)} if found is None else plain_metadata(found)
        return {"metadata": metadata, **msgspec.to_builtins(queue)}

    def _of(self, queue: TreeNode | OtherQueue) -> Document | None:
        kind = _OTHER if isinstance(queue, OtherQueue) else _KINDS[queue.kind]
        return self._by_kind[kind].get(_name(queue))


class QueueSelection:
    """What `-l` and `--sort-by` leave of the queues."""

    def __init__(self, objects: QueueObjects, selector: str, sort_by: str) -> None:
        self._objects = objects
        self._selector = parse_label_selector(selector) if selector else None
        self._path = sort_by

    def tree(self, tree: Tree) -> Tree:
        parts = [tree.roots, tree.astray, tree.missing]
        if self._selector is not None:
            parts = [[kept for root in part for kept in self._selected(root)] for part in parts]
        if self._path:
            nodes = [node for part in parts for root in part for node in _each(root)]
            check_paths([self._path], list(map(self._objects.document, nodes)), _SORT_BY)
            parts = [self._sorted(part) for part in parts]
        return Tree(*parts)

    def workloads(self, listed: Workloads, tree: Tree) -> Workloads:
        """Those in queues of the tree."""
        if self._selector is None:
            return listed
        inside = {node.name for root in tree.all_roots for node in _each(root)}
        return Workloads(
            [each for each in listed.holding if each.queue in inside],
            [each for each in listed.waiting if each.queue in inside],
        )

    def others(self, queues: Sequence[OtherQueue]) -> list[OtherQueue]:
        found = [each for each in queues if self._has_labels(each)]
        if not self._path:
            return found
        documents = list(map(self._objects.document, found))
        check_paths([self._path], documents, _SORT_BY)
        return [found[at] for at in order_of(self._path, documents)]

    def _selected(self, node: TreeNode) -> Iterator[TreeNode]:
        if self._has_labels(node):
            yield node
        elif node.kind == "clusterQueue":
            chosen = [child for child in node.children if self._has_labels(child)]
            if chosen:
                yield structs.replace(node, children=chosen)
        else:
            yield from (kept for child in node.children for kept in self._selected(child))

    def _has_labels(self, queue: TreeNode | OtherQueue) -> bool:
        return self._selector is None or self._selector.matches(self._objects.labels(queue))

    def _sorted(self, nodes: Sequence[TreeNode]) -> list[TreeNode]:
        inner = [structs.replace(node, children=self._sorted(node.children)) for node in nodes]
        return [inner[at] for at in order_of(self._path, list(map(self._objects.document, inner)))]


def _name(queue: TreeNode | OtherQueue) -> str:
    return queue.queue if isinstance(queue, OtherQueue) else queue.name


def _each(node: TreeNode) -> Iterator[TreeNode]:
    yield node
    yield from (inner for child in node.children for inner in _each(child))
