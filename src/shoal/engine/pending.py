"""Stores pending pods, grouped by equal requests: a cycle looks at one head per request, not at every pod.

When an ask fits nowhere, every pod behind it with the same ask fits nowhere either, so a backlog of ten thousand
equal pods costs a round as much as one. Where rules about pods exist that holds for pods of one kin only (another pod's
anti-affinity may mean the head and not the pod behind it), so each kin has a line of its own. Order is priority, then
arrival; a pod sent back keeps its old place. Pods of a gang stand in no line: they are decided together.

A line for which no node would do even if it were empty is set aside: a round does not look at it again before the nodes
change. Without that, two thousand pods with distinct impossible requests cost each round 80 ms.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from shoal.engine.charges import Charge
from shoal.engine.domain_counts.all_counts import DomainCounts, LabelKey
from shoal.engine.gang_members import Gangs
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity
from shoal.engine.pods import Waiting

LineKey = tuple[Charge, LabelKey]

_FIRST: Final = -(1 << 40)

_MOST_STALE: Final = 64
"""Entries of pods that wait no more, beside as many as there are pods, before a line is cleared of them; and lines."""

# Among equals in priority: nominated pods, then all others, then pods beyond the minimum of gangs.
NOMINATED: Final = 0
USUAL: Final = 1
SURPLUS: Final = 2
MORE_SURPLUS: Final = 3


def queue_rank(priority: int, phase: int) -> int:
    """One number that sorts by priority, highest first, then by phase."""
    return phase - (priority << 2)


def in_line(
    charge: Charge,
    priority: int,
    turn: int,
    *,
    has_precedence: bool = False,
    who: PodIdentity = NO_IDENTITY,
    nominated: str = "",
) -> Waiting:
    """A pod at its place."""
    first = _FIRST if has_precedence else queue_rank(priority, NOMINATED if nominated else USUAL)
    return Waiting(charge, priority, turn, has_precedence, who, nominated, first)


class Pending:
    """All waiting pods of a cluster."""

    __slots__ = (
        "_aside",
        "_counts",
        "_fresh",
        "_gangs",
        "_kinship",
        "_lines",
        "_nodes",
        "_pods",
        "_possible",
        "_turns",
    )

    def __init__(self, gangs: Gangs, counts: DomainCounts) -> None:
        self._gangs = gangs
        self._counts = counts
        self._kinship = counts.kinship
        self._pods: dict[str, Waiting] = {}
        self._lines: dict[LineKey, list[tuple[int, int, str]]] = {}
        self._aside: dict[LineKey, list[tuple[int, int, str]]] = {}
        """Lines that no node could take even if it were empty."""
        self._possible: set[LineKey] = set()
        """Lines that some node could take if it were empty, as far as that was examined."""
        self._nodes = 0
        """The version of the nodes' properties for which both hold."""
        self._fresh: dict[str, None] = {}
        self._turns = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __getitem__(self, key: str) -> Waiting:
        return self._pods[key]

    def charges(self) -> set[Charge]:
        """The asks of all waiting pods."""
        return {waiting.charge for waiting in self._pods.values()}

    def in_order(self) -> list[str]:
        """Waiting pods in the order in which they are tried."""
        return sorted(self._pods, key=lambda key: self._pods[key].order)

    def add(
        self,
        key: str,
        charge: Charge,
        priority: int,
        turn: int | None = None,
        *,
        has_precedence: bool = False,
        who: PodIdentity = NO_IDENTITY,
        nominated: str = "",
    ) -> None:
        """Put a pod in line; with the turn it had before, at its old place."""
        if turn is None:
            turn = self._turns
            self._turns += 1
        if who.group:
            self._gangs.queues(who.group, turn)
        self.restore(key, in_line(charge, priority, turn, has_precedence=has_precedence, who=who, nominated=nominated))
        self._fresh[key] = None

    def remove(self, key: str) -> Waiting | None:
        # The heap entry stays and is skipped when its turn comes: removal from the middle of a heap is a scan.
        waiting = self._pods.pop(key, None)
        if waiting is not None and waiting.who.group:
            self._gangs.waits_no_more(waiting.who.group, key)
        return waiting

    def restore(self, key: str, waiting: Waiting) -> None:
        """Undo `remove`. The line may have dropped the entry meanwhile; a second one is skipped as easily as none."""
        self._pods[key] = waiting
        if waiting.who.group:
            self._gangs.waits(waiting.who.group, key, waiting.turn)
            return
        self._queue(key, waiting)

    def _queue(self, key: str, waiting: Waiting) -> None:
        at = waiting.charge, self._counts.label_key(waiting.who.traits)
        lines = self._aside if at in self._aside else self._lines
        line = lines.get(at)
        if line is None:
            line = lines[at] = []
        heappush(line, (waiting.first, waiting.turn, key))
        if len(line) > 2 * len(self._pods) + _MOST_STALE:
            # Entries that come and go behind a head that waits for long are not skipped. A sorted list is a heap.
            lines[at] = [(*self._pods[pod].order, pod) for pod in self.line(at)]

    def note_nodes(self, version: int) -> None:
        """The version of the nodes' properties. After a change `heads` returns every line again."""
        if version != self._nodes:
            self._nodes = version
            self._lines |= self._aside
            self._aside = {}
            self._possible.clear()

    def is_known_possible(self, at: LineKey) -> bool:
        """Whether `note_possible` has said since the nodes changed that some node could take the line's ask."""
        return at in self._possible

    def note_possible(self, at: LineKey, *, is_possible: bool) -> None:
        """Record whether some node could take the line's ask if it were empty. If none could, `heads` leaves the line
        out until the nodes change."""
        if is_possible:
            self._possible.add(at)
            return
        if at in self._lines:
            self._aside[at] = self._lines.pop(at)
        if len(self._aside) > 2 * len(self._pods) + _MOST_STALE:
            # No walk clears these of pods that came and went.
            self._aside = {kept: line for kept, line in self._aside.items() if self.line(kept)}

    def heads(self) -> list[tuple[int, int, str, LineKey]]:
        """The first pod of every line, as a heap."""
        if self._kinship != self._counts.kinship:
            self._line_up_again()
        heads = []
        for at in list(self._lines):
            head = self.head(at)
            if head is not None:
                heads.append((*head, at))
        heapify(heads)
        return heads

    def line(self, at: LineKey) -> list[str]:
        """All pods of a line, in order."""
        there = {
            key
            for first, turn, key in self._lines.get(at) or self._aside.get(at) or ()
            if (pod := self._pods.get(key)) is not None
            and (pod.first, pod.turn) == (first, turn)
            and pod.charge is at[0]
        }
        return sorted(there, key=lambda key: self._pods[key].order)

    def _line_up_again(self) -> None:
        """Pods that were alike may differ now."""
        self._kinship = self._counts.kinship
        self._lines = {}
        self._aside = {}
        self._possible.clear()
        for key, waiting in self._pods.items():
            if not waiting.who.group:
                self._queue(key, waiting)

    def head(self, at: LineKey) -> tuple[int, int, str] | None:
        """The first pod still waiting in a line."""
        charge = at[0]
        line = self._lines[at]
        while line:
            first = line[0]
            pod = self._pods.get(first[2])
            # A pod that left, or came back with another ask or priority, has another turn or none.
            if pod is not None and pod.turn == first[1] and pod.first == first[0] and pod.charge is charge:
                return first
            heappop(line)
        del self._lines[at]
        self._possible.discard(at)
        return None

    def take_fresh(self) -> list[str]:
        """Pods that joined since the last call and still wait: the ones that are owed an answer."""
        fresh = [key for key in self._fresh if key in self._pods]
        self._fresh = {}
        return fresh

    def still_fresh(self, keys: list[str]) -> None:
        """They have got no answer yet."""
        self._fresh = dict.fromkeys(keys) | self._fresh
