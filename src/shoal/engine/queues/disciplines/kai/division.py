"""Divides an amount of one resource among sibling queues: first quotas, then what is left by priority and weight.

Whole numbers throughout: an amount is in thousandths of a GPU, thousandths of a core or bytes, and a weight is a ratio
of whole numbers. So a share never depends on the order of the queues, and the parts of a division add up exactly.

Guarantees, for one level: no queue gets more than it requests or than its limit; quotas are granted even if together
they exceed the amount, and only then is more granted than there is; a queue that wants more than its quota gets
something of the rest only if its weight is not 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby

import msgspec

UNITS: Mapping[str, int] = {"gpu": 1000, "cpu": 1, "memory": 1}
"""Over-quota parts are whole multiples of these: one GPU, one thousandth of a core, one byte."""


class ShareRequest(msgspec.Struct, frozen=True):
    """What one queue contributes to the division of one resource. Queues are listed oldest first."""

    name: str
    requested: int
    quota: int | None = 0
    """None is unlimited."""
    limit: int | None = None
    weight: float = 1.0
    priority: int = 100
    usage: float = 0.0
    """Its use over the window, divided by the capacity of the cluster over the window."""


class Division(msgspec.Struct, frozen=True):
    shares: dict[str, int]
    left: int
    """What no queue got."""


def divide(total: int, queues: Sequence[ShareRequest], *, unit: int = 1, k: float = 0.0) -> Division:
    """The fair shares of sibling queues, given the fair share of their parent."""
    shares = {queue.name: quota_share(total, queue) for queue in queues}
    return divide_over_quota(max(0, total - sum(shares.values())), queues, shares, unit=unit, k=k)


def quota_share(total: int, queue: ShareRequest) -> int:
    """What a queue gets before anything is weighed. An unlimited quota is the whole amount of the level."""
    return min(total if queue.quota is None else queue.quota, _most(queue))


def divide_over_quota(
    left: int, queues: Sequence[ShareRequest], granted: Mapping[str, int], *, unit: int = 1, k: float = 0.0
) -> Division:
    """Divide what quotas leave, beside what is granted already.

    Bands of equal queue priority follow each other, the highest first. What rounding down leaves in a band passes to
    the next one, and the units that are left after the last are dealt out singly.
    """
    shares = dict(granted)
    ages = {queue.name: age for age, queue in enumerate(queues)}
    bands = [list(band) for _, band in groupby(sorted(queues, key=_band), key=_band)]
    remainders: list[list[tuple[Fraction, ShareRequest]]] = []
    for band in bands:
        before = sum(shares[queue.name] for queue in band)
        remainders.append(_rounds(left, band, shares, unit, k))
        left -= sum(shares[queue.name] for queue in band) - before
    for rest in remainders:
        for _, queue in sorted(rest, key=lambda item: (-item[0], ages[item[1].name], item[1].name)):
            more = min(unit, left, _most(queue) - shares[queue.name])
            shares[queue.name] += more
            left -= more
    return Division(shares, left)


def _band(queue: ShareRequest) -> int:
    return -queue.priority


def _most(queue: ShareRequest) -> int:
    return queue.requested if queue.limit is None else min(queue.requested, queue.limit)


def _rounds(
    left: int, band: list[ShareRequest], shares: dict[str, int], unit: int, k: float
) -> list[tuple[Fraction, ShareRequest]]:
    """Rounds of one band; returns what rounding down withheld from each queue that wants more."""
    withheld: dict[str, tuple[Fraction, ShareRequest]] = {}
    is_over = False
    while not is_over and left > 0:
        is_over = True
        given = 0
        for queue, part in _parts(left, band, shares, k):
            wish = _most(queue) - shares[queue.name]
            if wish <= part:
                is_over &= wish == part
                more = wish
                withheld.pop(queue.name, None)
            else:
                more = int(part // unit) * unit
                withheld[queue.name] = part - more, queue
            shares[queue.name] += more
            given += more
        left -= given
    return list(withheld.values())


def _parts(
    left: int, band: list[ShareRequest], shares: Mapping[str, int], k: float
) -> Iterator[tuple[ShareRequest, Fraction]]:
    """Each queue that wants more, with its part of what is left by weight, as usage corrects it."""
    wanting = [queue for queue in band if queue.weight > 0 and _most(queue) > shares[queue.name]]
    weights = _corrected(wanting, k)
    total = sum(weights)
    if total:
        for queue, weight in zip(wanting, weights, strict=True):
            if weight:
                yield queue, left * weight / total


def _corrected(queues: list[ShareRequest], k: float) -> list[Fraction]:
    """w' = max(0, w + k (w - u)) of the weights, which add up to 1. A k below 0 counts as 0."""
    weights = [Fraction(queue.weight) for queue in queues]
    if k <= 0 or not any(queue.usage for queue in queues):
        return weights
    total, factor = sum(weights), Fraction(k)
    normal = [weight / total for weight in weights]
    return [
        max(Fraction(0), weight + factor * (weight - Fraction(queue.usage)))
        for queue, weight in zip(queues, normal, strict=True)
    ]
