"""Which pods belong to which gang, and which of them run: kept up to date by every pod that comes, moves or goes.

A gang exists as soon as something mentions it: its object may be seen after its pods, and pods outlive it. Its place
in line is that of its first pod and stays with it, so a gang that loses a pod is not overtaken by all newer work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shoal.engine.groups import GroupFacts


@dataclass(slots=True)
class Gang:
    """One gang's standing now. The dicts are ordered sets of pod keys."""

    name: str
    facts: GroupFacts | None = None
    """None while only pods have named it."""
    turn: int | None = None
    waiting: dict[str, None] = field(default_factory=dict)
    running: dict[str, None] = field(default_factory=dict)
    """Pods on nodes: bound, assumed by our plan, promised or leaving."""


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
        self._of(facts.name).facts = facts

    def drop(self, name: str) -> None:
        gang = self._by_name.get(name)
        if gang is not None:
            gang.facts = None
            self._forget_if_empty(gang)

    def waits(self, name: str, pod: str, turn: int) -> None:
        gang = self._of(name)
        gang.waiting[pod] = None
        if gang.turn is None or turn < gang.turn:
            gang.turn = turn

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

    def _of(self, name: str) -> Gang:
        gang = self._by_name.get(name)
        if gang is None:
            gang = self._by_name[name] = Gang(name)
        return gang

    def _forget_if_empty(self, gang: Gang) -> None:
        if gang.facts is None and not gang.waiting and not gang.running:
            del self._by_name[gang.name]
