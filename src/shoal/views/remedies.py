"""Describes what would help a waiting pod: a corrected label, freed capacity, changes of nodes, and why preemption
frees no capacity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from shoal.api.node import Node
from shoal.engine.device_notation.gpu_health import GpuHealth
from shoal.engine.preemption.evidence import GPU_COMPUTE, NodeShortage
from shoal.engine.reasons import Code
from shoal.engine.repelling_taints import RepellingTaint
from shoal.engine.unmatched import Unmatched
from shoal.views.asks import amount_words
from shoal.views.enumeration import few

_MOST = 4
_MOST_TAINTS = 3
_MOST_PROFILES = 12

SHARED_MEMORY = (
    "Time-slicing does not divide the memory of a GPU: pods take it first come, first served, and it is not swapped. "
    "A pod that finds too little fails at once with a CUDA out-of-memory error."
)


class Remedy(msgspec.Struct, frozen=True):
    """A change after which the subject runs."""

    words: str
    commands: tuple[str, ...] = ()
    """That make the change, to be run in this order; empty where no command does."""

    def lines(self) -> list[str]:
        return [self.words, *self.commands]


HINDRANCES: Mapping[Code, str] = {
    Code.NEVER_PREEMPTS: "its preemption policy is Never",
    Code.NO_VICTIMS: "no pod that may be preempted is on a node where it could run",
    Code.ONLY_HIGHER: "the pods in the way have no lower priority, are in another queue, or may not be preempted",
    Code.TOO_EARLY: "the pods to preempt have not run long enough yet",
    Code.BUDGETS: "disruption budgets forbid the evictions that would help",
    Code.NOT_ENOUGH: "even if all pods of lower priority were preempted, it would not fit",
}
"""Why preemption does not help, mildest last."""


def hindrance_words(code: Code | None) -> str:
    """None: no obstacle exists."""
    return "pods of lower priority could be preempted for it" if code is None else HINDRANCES[code]


def unmatched_words(conditions: Iterable[Unmatched]) -> str:
    """One sentence per condition that no node can meet."""
    return " ".join(_unmatched(each) for each in conditions)


_SIGNS = {"Gt": " > ", "Lt": " < "}


def _unmatched(condition: Unmatched) -> str:
    near = " or ".join(condition.near)
    sign = _SIGNS.get(condition.operator, "=")
    what = f"{condition.key}{sign}{' or '.join(condition.values)}" if condition.has_key else f"a label {condition.key}"
    if near:
        return f"No node has {what}; did you mean {near}?"
    return (
        f"No node has {what}; nodes have {few(condition.present, _MOST)}."
        if condition.present
        else f"No node has {what}."
    )


def still_waits_words(conditions: Iterable[Unmatched]) -> str:
    """Of the nearest labels, with which the subject was tried; empty where a condition has none."""
    labels = list(conditions)
    if not all(label.near for label in labels):
        return ""
    changes = [
        f"{label.near[0]} instead of {' or '.join(label.values) if label.has_key else label.key}" for label in labels
    ]
    return f"With {' and '.join(changes)} it would wait as well."


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


def free_words(rooms: Sequence[NodeShortage], returning: Sequence[str]) -> str:
    """`returning`: the pods among them that their controllers create again."""
    words = help_words(rooms)
    if not returning:
        return words
    verb = "is" if len(returning) == 1 else "are"
    return f"{words} {few(returning, _MOST)} {verb} created again and then wait{'s' * (len(returning) == 1)} behind it."


def overtaken_words(rooms: Sequence[NodeShortage], takers: Sequence[str]) -> str:
    """Freed capacity goes to others."""
    nodes = ", ".join(room.node for room in rooms[:_MOST])
    verb = "takes" if len(takers) == 1 else "take"
    return f"To free capacity on {nodes} does not help: {few(takers, _MOST)}, before it in line, {verb} it."


def both(first: Remedy, second: Remedy) -> Remedy:
    """Two changes that are needed together."""
    words = f"Two changes are needed. First: {first.words} Then: {second.words}"
    # A pod that both changes delete is deleted after both.
    once = tuple(command for command in first.commands if command not in second.commands)
    # The commands of one change alone would not help.
    return Remedy(words, (*once, *second.commands) if first.commands and second.commands else ())


def _amounts(room: NodeShortage) -> str:
    shown = [f"host port{'s' * (len(room.ports) > 1)} {' and '.join(map(str, room.ports))}"] if room.ports else []
    amounts = ", ".join(_amount(name, amount) for name, amount in room.amounts)
    return " and ".join([*shown, *([amounts] if amounts else [])]) or "room"


def _amount(name: str, amount: int) -> str:
    if name != GPU_COMPUTE:
        return amount_words(name, amount)
    gpus = f"{amount / 1000:.3f}".rstrip("0").rstrip(".")
    return f"{gpus} GPU{'' if amount <= 1000 else 's'}"


def uncordon_words(nodes: Sequence[str]) -> str:
    return f"Uncordon {_nodes(nodes)}."


def repair_words(found: Sequence[tuple[str, GpuHealth]]) -> str:
    return f"Repair or replace {' and '.join(_broken(name, health) for name, health in found)}."


def health_words(node: str, health: GpuHealth) -> str:
    """`node p5-48xlarge-0: 1 of 8 GPUs is unhealthy (GPU 3: XID 79)`."""
    if not health.total:
        return f"node {node}: its labels name GPUs, and it advertises none; do its driver and device plugin run?"
    verb = "is" if health.unhealthy == 1 else "are"
    codes = ", ".join(f"GPU {index}: XID {xid}" for index, xid in health.xids.items())
    units = health.unit if health.total == 1 else f"{health.unit}s"
    return f"node {node}: {health.unhealthy} of {health.total} {units} {verb} unhealthy" + (f" ({codes})" * bool(codes))


def not_ready_words(node: Node) -> str:
    """`node n is not ready: Kubelet stopped posting node status.`"""
    message = next((each.message for each in node.status.conditions if each.type == "Ready"), "")
    return f"node {node.metadata.name} is not ready" + f": {message}" * bool(message)


def revive_words(nodes: Sequence[str]) -> str:
    return f"Repair {_nodes(nodes)}, which {'is' if len(nodes) == 1 else 'are'} not ready."


def mig_words(layout: str, nodes: Sequence[str], ending: Sequence[str]) -> str:
    """`ending`: pods on the node's GPUs, which have to end before the layout can be changed."""
    words = f"Change the MIG layout of {_nodes(nodes)} to {layout}"
    if not ending:
        return f"{words}: no pod uses {'its' if len(nodes) == 1 else 'their'} GPUs."
    return f"End the pods on the GPUs of {nodes[0]} ({few(ending, _MOST)}), then change its MIG layout to {layout}."


def single_strategy_words(nodes: Sequence[str], profile: str) -> str:
    """Why nodes never meet a request for a MIG profile by name."""
    verb, their = ("has", "its") if len(nodes) == 1 else ("have", "their")
    return (
        f"{_nodes(nodes)} {verb} MIG strategy single: {their} MIG instances are advertised as nvidia.com/gpu, never as "
        f"nvidia.com/mig-{profile}"
    )


def single_request_words(amount: int, profile: str, product: str) -> str:
    return (
        f"Request nvidia.com/gpu: {amount} instead of nvidia.com/mig-{profile}, with the node selector "
        f"nvidia.com/gpu.product={product}."
    )


def unknown_profile_words(profile: str, meant: str, near: str = "") -> str:
    """Of a MIG profile that no node which may take the pod offers. `meant`: the one with which it runs. `near`: the
    nearest one, which was tried."""
    words = f"no GPU of the nodes that may take the pod offers the MIG profile {profile}"
    if meant:
        return f"{words}; did you mean {meant}?"
    return f"{words}; with {near} instead it would wait as well" if near else words


def offered_profiles_words(product: str, profiles: Sequence[str]) -> str:
    return f"{product} offers {few(profiles, _MOST_PROFILES)}"


def _broken(node: str, health: GpuHealth) -> str:
    if not health.xids:
        units = health.unit if health.unhealthy == 1 else f"{health.unit}s"
        return f"{health.unhealthy} {units} of node {node}"
    gpus = " and ".join(f"GPU {index} (XID {xid})" for index, xid in health.xids.items())
    return f"{gpus} of node {node}"


def _nodes(names: Sequence[str]) -> str:
    return f"node{'' if len(names) == 1 else 's'} {few(names, _MOST)}"
