"""What is read off the facts without deciding anything: what GPUs do, which gangs there are."""

from __future__ import annotations

from shoal.api.node import Node
from shoal.cli.living import Source
from shoal.store.inventory import Inventory
from shoal.store.queues.members import Members
from shoal.views.gang_list import GangLine, gangs_of
from shoal.views.top import Top, top_of

_SEED = 42


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
    return top_of(loaded.cluster, nodes, owner_of, gated=len(loaded.world.gated), workloads=workloads)


def gangs_of_source(source: Source) -> list[GangLine]:
    return gangs_of(source.taken().placement, _SEED)
