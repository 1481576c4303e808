"""Which waiting groups their queues let in: the step that Volcano calls enqueue.

A group is let in when its queue and all queues above it are open, and when what it asks for at least fits below their
capabilities beside what runs there and what was let in before; one that says no least is let in at once. Those of
higher priority are looked at first, then the older ones; one that does not fit is skipped, unless its queue is strictly
fifo.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.controllers.volcano.amounts import beyond
from shoal.controllers.volcano.phases import Refusal
from shoal.controllers.volcano.queue_tree import QueueTree, Usage
from shoal.controllers.volcano.sights import PodGroup
from shoal.controllers.volcano.tallies import Tally
from shoal.store.live.item import Key


class Candidate(msgspec.Struct, frozen=True):
    """A group with what its pods come to."""

    group: PodGroup
    tally: Tally
    priority: int = 0

    @property
    def key(self) -> Key:
        return self.group.metadata.key

    @property
    def is_hopeless(self) -> bool:
        """So many of it failed that it cannot come to its minimum: nothing is kept for it that others could use."""
        return self.tally.of("Failed") > 0 and self.tally.valid < self.group.spec.min_member

    @property
    def turn(self) -> tuple[int, float, Key]:
        return (-self.priority, self.group.metadata.created_s, self.key)


class Decision(msgspec.Struct, frozen=True):
    let_in: frozenset[Key]
    refused: dict[Key, Refusal]
    allocated: Usage


def enqueue(tree: QueueTree, candidates: Iterable[Candidate]) -> Decision:
    everybody = list(candidates)
    allocated: Usage = {}
    promised: Usage = {}
    for each in everybody:
        tree.charge(allocated, each.group.queue, each.tally.allocated)
        if each.group.status.phase in ("Inqueue", "Running", "Unknown") and not each.is_hopeless:
            tree.charge(promised, each.group.queue, beyond(each.tally.allocated, each.group.min_resources()))
    let_in: set[Key] = set()
    refused: dict[Key, Refusal] = {}
    stuck: dict[str, Refusal] = {}
    waiting = [each for each in everybody if each.group.is_waiting]
    for each in sorted(waiting, key=lambda one: one.turn):
        queue, asked = each.group.queue, each.group.min_resources()
        more = beyond(each.tally.allocated, asked)
        refusal = tree.closed(queue) or stuck.get(queue) or tree.full(queue, more, allocated, promised)
        if refusal is None:
            let_in.add(each.key)
            tree.charge(promised, queue, more)
            continue
        refused[each.key] = refusal
        known = tree.queues.get(queue)
        if refusal.is_quota and known is not None and known.spec.dequeue_strategy == "fifo":
            stuck[queue] = refusal
    return Decision(frozenset(let_in), refused, allocated)
