"""Gangs in one line: `gang("train").pods(8).gpus(1).required("rack")`, and fleets that stand in racks.

A gang needs all its pods unless told otherwise. Pods are named after the gang: train-0, train-1, ...
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.asks import Ask
from shoal.engine.events import TopologySeen
from shoal.engine.groups import GangSubgroup, GroupFacts, TopologyFacts, TopologyRequirement
from shoal.engine.pod_identity import PodIdentity, PodLabels

FLEET = "fleet"
LEVELS = ("zone", "block", "rack")
NO_WISH = TopologyRequirement()


@dataclass(frozen=True)
class Batch:
    count: int
    ask: AskBuilder
    part: str = ""
    role: str = ""
    order: int = 0


@dataclass(frozen=True)
class GroupBuilder:
    name: str
    batches: tuple[Batch, ...] = ()
    least: int | None = None
    parts: tuple[GangSubgroup, ...] = ()
    parts_least: int | None = None
    roles: tuple[tuple[str, int], ...] = ()
    requirement: TopologyRequirement = NO_WISH
    priority: int | None = None
    labels: tuple[tuple[str, str], ...] = ()

    def labelled(self, **labels: str) -> GroupBuilder:
        """Of all its pods."""
        return replace(self, labels=tuple(sorted(labels.items())))

    def pods(
        self, count: int, wanted: AskBuilder | None = None, *, part: str = "", role: str = "", order: int = 0
    ) -> GroupBuilder:
        return replace(self, batches=(*self.batches, Batch(count, wanted or ask(), part, role, order)))

    def gpus(self, count: int) -> GroupBuilder:
        """Of the pods named last."""
        *others, last = self.batches
        return replace(self, batches=(*others, replace(last, ask=last.ask.gpus(count))))

    def minimum(self, least: int) -> GroupBuilder:
        return replace(self, least=least)

    def part(
        self, name: str, least: int, parent: str = "", *, required: str = "", preferred: str = "", closest: bool = False
    ) -> GroupBuilder:
        bound = required or preferred or closest
        requirement = TopologyRequirement(FLEET, required, preferred, closest) if bound else TopologyRequirement()
        return replace(self, parts=(*self.parts, GangSubgroup(name, parent, least, requirement)))

    def any_parts(self, least: int) -> GroupBuilder:
        """So many of the parts suffice."""
        return replace(self, parts_least=least)

    def role(self, name: str, least: int) -> GroupBuilder:
        return replace(self, roles=(*self.roles, (name, least)))

    def required(self, level: str) -> GroupBuilder:
        return self._wishing(required=level)

    def preferred(self, level: str) -> GroupBuilder:
        return self._wishing(preferred=level)

    def closest(self, level: str = "") -> GroupBuilder:
        return self._wishing(required=level, closest=True)

    def slices(self, level: str, size: int) -> GroupBuilder:
        return self._wishing(slice_level=level, slice_size=size)

    def at(self, priority: int) -> GroupBuilder:
        return replace(self, priority=priority)

    def _wishing(self, **changes: str | int | bool) -> GroupBuilder:
        fields = {name: getattr(self.requirement, name) for name in TopologyRequirement.__struct_fields__}
        return replace(self, requirement=TopologyRequirement(**{**fields, "topology": FLEET, **changes}))

    # -- made ----------------------------------------------------------------------------------------------------

    def facts(self) -> GroupFacts:
        count = sum(batch.count for batch in self.batches)
        return GroupFacts(
            name=self.name,
            minimum=(0 if self.parts else count) if self.least is None else self.least,
            parts=self.parts,
            parts_minimum=self.parts_least,
            roles=self.roles,
            requirement=self.requirement,
            priority=self.priority,
        )

    def members(self) -> Iterator[tuple[str, Ask, PodIdentity]]:
        number = 0
        for batch in self.batches:
            for _ in range(batch.count):
                traits = PodLabels(labels=self.labels)
                who = PodIdentity(traits, self.name, batch.part, batch.role, order=batch.order)
                yield f"{self.name}-{number}", batch.ask.made(), who
                number += 1

    def arrive(self, world: Scenario) -> GroupBuilder:
        """The object and all its pods appear."""
        world.group(self.facts())
        for key, wanted, who in self.members():
            world.arrive(key, wanted, who=who)
        return self

    def run(self, world: Scenario, *nodes: str) -> GroupBuilder:
        """The first pods run already, one on each of these nodes."""
        for (key, wanted, who), there in zip(self.members(), nodes, strict=False):
            world.bind(key, wanted, there, who=who)
        return self


def gang(name: str) -> GroupBuilder:
    return GroupBuilder(name)


def racks(*sizes: int, gpus: int = 8, zone: str = "z", block: str = "b", first: str = "") -> list[NodeBuilder]:
    """Nodes in racks r0, r1, ... of one block: `racks(2, 3)` makes r0n0, r0n1, r1n0, r1n1, r1n2."""
    return [
        node(f"{first}r{rack}n{number}")
        .gpus(gpus)
        .label("host", f"{first}r{rack}n{number}")
        .label("zone", zone)
        .label("block", block)
        .label("rack", f"{first}r{rack}")
        for rack, size in enumerate(sizes)
        for number in range(size)
    ]


def in_racks(*nodes: NodeBuilder, policy: str = "BestFit") -> Scenario:
    """A world with the levels zone, block, rack."""
    world = Scenario(*nodes, policy=policy)
    world.apply(TopologySeen(TopologyFacts(FLEET, LEVELS)))
    return world
