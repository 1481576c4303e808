"""Represents the devices and resource claims (DRA) that a planning of nodes depends on.

They are given as the facts of the production allocator: those of nodes that exist, with those that starting nodes will
have, and those of each pool and instance type, under the name of its row. Expressions are evaluated before, because
decision code cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.api.pod import Pod
from shoal.autoscale.nodes.device_templates import on_node
from shoal.engine.dra.devices import SliceFacts
from shoal.engine.dra.requests import ClaimFacts, ClaimRef
from shoal.engine.events import ClaimSeen, DeviceSetSeen, DevicesSeen, Event


def row_name(pool: str, instance_type: str) -> str:
    """The name of the row of a pool's nodes of a type, and of the template of their devices."""
    return f"{pool}/{instance_type}"


class PlannedDevices(msgspec.Struct, frozen=True):
    """Devices and claims, as of one planning."""

    templates: tuple[SliceFacts, ...] = ()
    """Of each pool and type; the node that they name is its row."""
    present: tuple[SliceFacts, ...] = ()
    """Of nodes that exist, and of devices that several nodes reach."""
    sets: tuple[DeviceSetSeen, ...] = ()
    """What requests select, of both."""
    claims: tuple[ClaimFacts, ...] = ()
    refs: Mapping[str, tuple[ClaimRef, ...]] = {}
    """The claims of pods, by namespace and name. For a pod on a node they are what it needs elsewhere."""
    contents: Mapping[str, ClaimRef] = {}
    """What claims made from a template ask for, by the template's namespace and name."""

    def refs_of(self, pod: Pod) -> tuple[ClaimRef, ...] | None:
        """The claims of a pod, also of one that is not created yet; None if nothing is known of them."""
        namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
        known = self.refs.get(f"{namespace}/{pod.metadata.name}")
        if known is not None or not pod.spec.resource_claims:
            return known
        found = []
        for claim in pod.spec.resource_claims:
            content = self.contents.get(f"{namespace}/{claim.resource_claim_template_name}")
            if claim.resource_claim_name:
                found.append(ClaimRef(claim.name, f"{namespace}/{claim.resource_claim_name}"))
            elif content is None:
                return None
            else:
                found.append(ClaimRef(claim.name, own=content.own, trouble=content.trouble))
        return tuple(found)

    def of_templates(self) -> Iterator[Event]:
        """The facts for rows of nodes that do not exist yet."""
        yield from map(DevicesSeen, self.templates)
        yield from self._of_claims()

    def of_nodes(self) -> Iterator[Event]:
        """The facts for nodes that exist."""
        yield from map(DevicesSeen, self.present)
        yield from self._of_claims()

    def of_planned(self, nodes: Mapping[str, str]) -> Iterator[Event]:
        """The facts of planned nodes, beside the others: row by name of the node."""
        by_row: dict[str, list[SliceFacts]] = {}
        for piece in self.templates:
            by_row.setdefault(piece.reach.node_name, []).append(piece)
        made = [(piece, on_node(piece, name)) for name, row in nodes.items() for piece in by_row.get(row, ())]
        yield from (DevicesSeen(piece) for _, piece in made)
        yield from with_copies(self.sets, made) if made else ()

    def _of_claims(self) -> Iterator[Event]:
        yield from self.sets
        yield from map(ClaimSeen, self.claims)


NO_DEVICES: Final = PlannedDevices()


def with_copies(sets: tuple[DeviceSetSeen, ...], made: list[tuple[SliceFacts, SliceFacts]]) -> list[DeviceSetSeen]:
    """The sets, with the copies of the devices in them. `made`: pieces, and copies of them under other names."""
    copies: dict[str, list[str]] = {}
    for piece, copy in made:
        for before, after in zip(piece.devices, copy.devices, strict=True):
            copies.setdefault(f"{piece.pool_key}/{before.name}", []).append(f"{copy.pool_key}/{after.name}")
    return [
        DeviceSetSeen(each.name, each.devices | {copy for device in each.devices for copy in copies.get(device, ())})
        for each in sets
    ]
