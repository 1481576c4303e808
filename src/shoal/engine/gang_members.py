"""Tracks which pods belong to which gang, and which of them run.

A gang exists as soon as something mentions it: its object may be seen after its pods, and pods outlive it. Its place
in line is that of its first pod and stays with it, so a gang that loses a pod is not overtaken by all newer work.

Where it ran is remembered, because a gang that ends whole and comes back belongs where its data and its network are. A
few nodes of every part suffice for that, the last ones left: the last one alone may be the very node that failed.
Rejected: what each pod was on, which costs a gang of a thousand as many names, and its new pods may have other ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import structs

from shoal.engine.groups import GroupFacts, parts_fault

MOST_NODES = 8
"""So many nodes of every part are remembered."""


@dataclass(slots=True)
class Gang:
    """One gang's standing now. The dicts are ordered sets of pod keys."""

    name: str
    facts: GroupFacts | None = None
    """None while only pods have named it. Parts that make no tree are left out."""
    fault: str = ""
    """Why its parts make no tree: as long as they do not, nothing of it is started."""
    turn: int | None = None
    waiting: dict[str, None] = field(default_factory=dict)
    running: dict[str, None] = field(default_factory=dict)
    """Pods on nodes: bound, assumed by our plan, nominated or terminating."""
    was_on: dict[str, dict[str, None]] = field(default_factory=dict)
    """Part -> nodes its pods ended on since any of them was last bound; parts and nodes in order, the latest last."""


class Gangs:
    """All gangs of a cluster."""

    __slots__ = ("_by_name",)

    def __init__(self) -> None:
        self._by_name: dict[str, Gang] = {}

    def __iter__(self) -> Iterator[Gang]:
        return iter(self._by_name.values())

    def __getitem__(self, name: str) -> Gang:
        return self._by_name[name]

    def find(self, name: str) -> Gang | None:
        return self._by_name.get(name)

    def put(self, facts: GroupFacts) -> None:
        gang = self._of(facts.name)
        gang.fault = facts.unreadable or parts_fault(facts.parts)
        gang.facts = structs.replace(facts, parts=()) if gang.fault else facts

    def drop(self, name: str) -> None:
        gang = self._by_name.get(name)
        if gang is not None:
            gang.facts = None
            gang.fault = ""
            gang.was_on.clear()
            self._forget_if_empty(gang)

    def queues(self, name: str, turn: int) -> None:
        """A pod of it came with this turn; what a trial puts back in line changes no turns."""
        gang = self._of(name)
        if gang.turn is None or turn < gang.turn:
            gang.turn = turn

    def waits(self, name: str, pod: str, turn: int) -> None:
        if name not in self._by_name:
            self.queues(name, turn)
        self._by_name[name].waiting[pod] = None

    def waits_no_more(self, name: str, pod: str) -> None:
        gang = self._of(name)
        gang.waiting.pop(pod, None)
        self._forget_if_empty(gang)

    def runs(self, name: str, pod: str) -> None:
        self._of(name).running[pod] = None

    def runs_no_more(self, name: str, pod: str) -> None:
        gang = self._of(name)
        gang.running.pop(pod, None)
        self._forget_if_empty(gang)

    def bound(self, name: str, part: str) -> None:
        """Record that a pod of the part runs: from now on its node determines the place of the part."""
        gang = self._by_name.get(name)
        if gang is not None:
            gang.was_on.pop(part, None)

    def ended(self, name: str, part: str, node: str) -> None:
        """A pod of it that was bound is no more. Only the world says so: a trial is no end."""
        gang = self._by_name.get(name)
        if gang is None or gang.facts is None:
            # Without its object a gang is forgotten with its last pod, and found again with the next.
            return
        nodes = gang.was_on.pop(part, {})
        nodes.pop(node, None)
        nodes[node] = None
        gang.was_on[part] = nodes
        if len(nodes) > MOST_NODES:
            del nodes[next(iter(nodes))]
        if len(gang.was_on) > len(gang.facts.parts) + 1:
            # Pods may name undeclared parts.
            del gang.was_on[next(iter(gang.was_on))]

    def _of(self, name: str) -> Gang:
        gang = self._by_name.get(name)
        if gang is None:
            gang = self._by_name[name] = Gang(name)
        return gang

    def _forget_if_empty(self, gang: Gang) -> None:
        if gang.facts is None and not gang.waiting and not gang.running:
            del self._by_name[gang.name]
