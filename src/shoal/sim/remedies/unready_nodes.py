"""Nodes that are not ready: which they are, and the change that they are ready again.

Their taints keep pods off as other taints do, but to tolerate them does not help: the node has to be repaired.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from msgspec import structs

from shoal.api.node import Node
from shoal.api.taints import HARD_EFFECTS, Taint
from shoal.engine.events import NodeFacts
from shoal.sim.remedies.candidates import NodeCandidates, WaitingSubject
from shoal.sim.remedies.node_candidates import MOST_NODES, admitted
from shoal.sim.remedies.objects import Objects
from shoal.sim.remedies.trial import RemedyTrial
from shoal.views.remedies import Remedy, revive_words

FAULT = "shoal.dev/fault"
"""The annotation of a simulated node with a fault that can be removed."""
_KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
UNREADY = tuple(Taint(key, effect) for key in _KEYS for effect in ("NoExecute", "NoSchedule"))


def is_unready(node: Node) -> bool:
    """Whether it is not ready and has taints that keep pods off for this reason."""
    return not node.is_ready() and any(
        taint.key in _KEYS and taint.effect in HARD_EFFECTS for taint in node.spec.taints
    )


def revive(trial: RemedyTrial, subject: WaitingSubject, objects: Objects) -> Iterator[NodeCandidates]:
    """Nodes that are not ready."""
    unready = [name for name, node in objects.nodes.items() if name in trial.nodes and is_unready(node)]
    names = admitted(trial, subject, unready, UNREADY)[:MOST_NODES]
    if names:

        def apply(stack: ExitStack, name: str) -> None:
            trial.change_node(stack, name, _revived)

        def remedy(chosen: tuple[str, ...]) -> Remedy:
            commands = tuple(
                f"shoal cluster heal {name}" for name in chosen if FAULT in objects.nodes[name].metadata.annotations
            )
            return Remedy(revive_words(chosen), commands)

        yield NodeCandidates(names, apply, remedy)


def _revived(node: NodeFacts) -> NodeFacts:
    return structs.replace(node, taints=tuple(taint for taint in node.taints if taint.key not in _KEYS))
