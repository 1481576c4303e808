"""One cohort, cluster queue or local queue out of the quota tree, with everything below it.

A name alone will do where one of them has it; else the kind is given too, as in `cohort/x`, `cq/x`, `lq/x`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import structs

from shoal.units.errors import UserError, excerpt
from shoal.views.queue_tree import Kind, Tree, TreeNode
from shoal.views.queue_workloads import Workloads

_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("cohort", "cohorts"), "cohort"),
    **dict.fromkeys(("clusterqueue", "clusterqueues", "cq"), "clusterQueue"),
    **dict.fromkeys(("localqueue", "localqueues", "lq", "queue", "queues"), "localQueue"),
}
_NEAR = 3


class QueuePart(NamedTuple):
    meant: TreeNode
    shown: TreeNode
    """The same; of a local queue the cluster queue that it leads to, because that has the quota."""


def part_of(tree: Tree, text: str, namespace: str = "", *, is_only: bool = False) -> QueuePart:
    """The one that is meant. `namespace`: where local queues are looked for first, or alone."""
    meant = _meant(tree, text, namespace, is_only=is_only)
    nodes = (node for root in tree.roots for node in _each(root))
    above = next((node for node in nodes if meant.kind == "localQueue" and meant in node.children), None)
    return QueuePart(meant, meant if above is None else structs.replace(above, children=[meant]))


def _meant(tree: Tree, text: str, namespace: str, *, is_only: bool) -> TreeNode:
    word, slash, rest = text.partition("/")
    kind = _KINDS.get(word.partition(".")[0].lower()) if slash else None
    name = rest if kind else text
    nodes = [node for root in (*tree.roots, *tree.astray) for node in _each(root)]
    found = [node for node in nodes if _is(node, kind, name)]
    here = [node for node in found if node.kind == "localQueue" and node.name == f"{namespace}/{name}"]
    are_local = all(node.kind == "localQueue" for node in found)
    if len(found) > 1 and here and are_local:
        found = here
    if found and not here and are_local and is_only and "/" not in name:
        others = [node.name.partition("/")[0] for node in found]
        fix = f"it exists in {', '.join(others[:_NEAR])}: use -n {others[0]}"
        raise UserError(f"local queue {excerpt(name)} not found in namespace {namespace}", fix=fix)
    if len(found) == 1:
        return found[0]
    if found:
        names = " or ".join(f"{node.kind.lower()}/{node.name}" for node in found[:_NEAR])
        raise UserError(f"{excerpt(text)} is the name of several", fix=f"say {names}")
    near = difflib.get_close_matches(name, [node.name for node in nodes if kind in (None, node.kind)], _NEAR)
    fix = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else f"{len(nodes):,} exist"
    raise UserError(f"cohort, cluster queue or local queue {excerpt(name)} not found", fix=fix)


def workloads_in(workloads: Workloads, part: TreeNode) -> Workloads:
    """Those of its local queues."""
    inside = {node.name for node in _each(part)}
    return Workloads(
        [each for each in workloads.holding if each.queue in inside],
        [each for each in workloads.waiting if each.queue in inside],
    )


def _is(node: TreeNode, kind: Kind | None, name: str) -> bool:
    short = node.name.partition("/")[2] if node.kind == "localQueue" else ""
    return kind in (None, node.kind) and name in (node.name, short)


def _each(node: TreeNode) -> Iterator[TreeNode]:
    yield node
    yield from (inner for child in node.children for inner in _each(child))
