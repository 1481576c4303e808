"""Divides the cluster among queues by weight: the shares of Volcano's proportion plugin.

Rounds of water-filling: each queue whose request is not met gets its part by weight of what is left, cut to its real
capability and to its request, and raised to its guarantee, until nothing changes. What the cuts leave is divided again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from shoal.engine.queues.disciplines.volcano.amounts import NEGLIGIBLE, Figures, holds

_MOST_ROUNDS = 1000
"""Each round with a change leaves a smaller remainder, so that tens of rounds are the rule."""


class WeightedQueue(msgspec.Struct, frozen=True):
    """What the division reads of a queue."""

    name: str
    weight: int
    request: Figures
    real_capability: Figures
    """Resources that are not named are not limited."""
    guarantee: Figures = {}


def real_capability(capability: Figures, guarantee: Figures, whole: Figures, guaranteed: Figures) -> dict[str, float]:
    """What a queue may use at most: the whole without the guarantees of the others, and no more than its capability.

    `guaranteed`: the sum of the guarantees of the queue and its siblings.
    """
    found = {
        name: max(amount - guaranteed.get(name, 0) + guarantee.get(name, 0), 0.0) for name, amount in whole.items()
    }
    for name, amount in capability.items():
        found[name] = min(found.get(name, amount), amount)
    return found


def divide(total: Figures, queues: Sequence[WeightedQueue]) -> dict[str, Mapping[str, float]]:
    """The share of each queue."""
    deserved: dict[str, dict[str, float]] = {queue.name: {} for queue in queues}
    remaining = dict(total)
    unmet = {queue.name: queue for queue in queues if queue.weight > 0 or queue.guarantee}
    for _ in range(_MOST_ROUNDS):
        whole_weight = sum(max(queue.weight, 0) for queue in unmet.values())
        if not unmet:
            break
        before = dict(remaining)
        for queue in list(unmet.values()):
            old = deserved[queue.name]
            part = max(queue.weight, 0) / whole_weight if whole_weight else 0.0
            new = deserved[queue.name] = _raised(queue, old, before, part)
            for name in new.keys() | old.keys():
                remaining[name] = remaining.get(name, 0.0) - new.get(name, 0.0) + old.get(name, 0.0)
            if holds(new, queue.request) or new == old:
                del unmet[queue.name]
        remaining = {name: max(amount, 0.0) for name, amount in remaining.items()}
        if all(amount < NEGLIGIBLE for amount in remaining.values()) or remaining == before:
            break
    return {name: {**share} for name, share in deserved.items()}


def _raised(queue: WeightedQueue, old: Figures, remaining: Figures, part: float) -> dict[str, float]:
    """The share after one more round."""
    new: dict[str, float] = {}
    for name in remaining.keys() | old.keys() | queue.guarantee.keys():
        amount = old.get(name, 0.0) + remaining.get(name, 0.0) * part
        amount = min(amount, queue.real_capability.get(name, amount), queue.request.get(name, 0.0))
        new[name] = max(amount, queue.guarantee.get(name, 0.0))
    return new
