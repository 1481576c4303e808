"""Reads the use of GPUs and the list of gangs from the facts, without any decision."""

from __future__ import annotations

from msgspec import structs

from shoal.api.node import Node
from shoal.cli.manifests import Loaded
from shoal.cli.object_source import Source
from shoal.sim.queue_outlook import outlook
from shoal.store.held_pods import HeldPod
from shoal.store.inventory import Inventory
from shoal.store.queues.members import Members
from shoal.views.decision import Reason
from shoal.views.gang_list import GangLine, gang_order, gangs_of
from shoal.views.top import Top, top_of

_SEED = 42
_LET_IN = Reason("", "", "")


def top_of_source(source: Source) -> Top:
    loaded = source.taken()
    inventory = Inventory(source.documents)
    members = Members(inventory)

    def owner_of(pod: str) -> str:
        """The highest of its controllers, or the pod itself."""
        placed = members.pods.get(pod)
        owners = [] if placed is None else list(members.owners(placed.value))
        return f"{owners[-1][0]}/{owners[-1][2]}" if owners else pod

    nodes = [placed.value for placed in inventory.of(Node)]
    queued = loaded.queued
    held = set[str]() if queued is None else set(queued.kueue.queues.held)
    workloads = 0 if queued is None else sum(1 for each in queued.workloads if each.key not in held)
    return top_of(loaded.cluster, nodes, owner_of, gated=len(loaded.manifests.gated), workloads=workloads)


def gangs_of_source(source: Source) -> list[GangLine]:
    loaded = source.taken()
    lines = gangs_of(loaded.placement, _SEED)
    words = _queued(loaded)
    return sorted((_with_queue(line, words.get(line.gang)) for line in lines), key=gang_order)


def _with_queue(line: GangLine, word: tuple[str, Reason] | None) -> GangLine:
    if word is None:
        return line
    queue, reason = word
    if line.state != "empty" or not reason.code:
        return structs.replace(line, queue=queue)
    return structs.replace(line, state="queued", queue=queue, code=reason.code, message=reason.message)


def _queued(loaded: Loaded) -> dict[str, tuple[str, Reason]]:
    """By gang: its queue, and why that keeps its pods back; a reason without a code where it does not."""
    found = {
        hold.group: (hold.queue, Reason(hold.code, hold.message, hold.help))
        for hold in loaded.manifests.gated.values()
        if isinstance(hold, HeldPod) and hold.group
    }
    queued = loaded.queued
    if queued is None:
        return found
    reasons = outlook(queued.kueue, loaded.now_s)
    for facts in queued.workloads:
        for group in queued.pods.groups_of(facts.key):
            found[group] = facts.queue, reasons.get(facts.key, _LET_IN)
    return found
