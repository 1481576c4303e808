"""Describes what would help a waiting pod: a corrected label, freed capacity, and why preemption frees none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shoal.engine.preemption.evidence import GPU_COMPUTE, NodeShortage
from shoal.engine.reasons import Code
from shoal.engine.repelling_taints import RepellingTaint
from shoal.engine.unmatched import Unmatched
from shoal.views.asks import amount_words
from shoal.views.enumeration import few

_MOST = 4
_MOST_TAINTS = 3

HINDRANCES: Mapping[Code, str] = {
    Code.NEVER_PREEMPTS: "its preemption policy is Never",
    Code.NO_VICTIMS: "no pod that may be preempted is on a node where it could run",
    Code.ONLY_HIGHER: "the pods in the way have no lower priority, are in another queue, or may not be preempted",
    Code.TOO_EARLY: "the pods to preempt have not run long enough yet",
    Code.BUDGETS: "disruption budgets forbid the evictions that would help",
    Code.NOT_ENOUGH: "even if all of lower priority yielded, it would not fit",
}
"""Why preemption does not help, mildest last."""


def hindrance_words(code: Code | None) -> str:
    """None: no obstacle exists."""
    return "others of lower priority could make room for it" if code is None else HINDRANCES[code]


def unmatched_words(conditions: Iterable[Unmatched]) -> str:
    """One sentence per condition that no node can meet."""
    return " ".join(_unmatched(each) for each in conditions)


def _unmatched(condition: Unmatched) -> str:
    near = " or ".join(condition.near)
    what = f"{condition.key}={' or '.join(condition.values)}" if condition.has_key else f"a label {condition.key}"
    return f"No node has {what}; did you mean {near}?" if near else f"No node has {what}."


def tolerance_words(found: Sequence[RepellingTaint]) -> str:
    """What a pod would have to tolerate to have more nodes."""
    parts = [
        f"{' and '.join(map(str, one.taints))} ({one.nodes:,} node{'s' * (one.nodes != 1)})"
        for one in found[:_MOST_TAINTS]
    ]
    return f"Tolerate {' or '.join(parts)}." if parts else ""


def help_words(rooms: Sequence[NodeShortage]) -> str:
    """What to free, where, and who holds it."""
    if not rooms:
        return ""
    parts = [f"{_amounts(room)} on {room.node} ({few(room.pods, _MOST)})" for room in rooms[:_MOST]]
    more = len(rooms) - _MOST
    if more > 0:
        parts.append(f"as much on {more:,} more nodes")
    return f"Free {' and '.join(parts)}."


def _amounts(room: NodeShortage) -> str:
    shown = [_amount(name, amount) for name, amount in room.amounts]
    return ", ".join(shown) or "room"


def _amount(name: str, amount: int) -> str:
    if name != GPU_COMPUTE:
        return amount_words(name, amount)
    gpus = f"{amount / 1000:.3f}".rstrip("0").rstrip(".")
    return f"{gpus} GPU{'' if amount <= 1000 else 's'}"
