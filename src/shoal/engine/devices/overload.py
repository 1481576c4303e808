"""Computes what is left of devices on nodes where pods use more than the node has.

Another scheduler may bind a pod to a node that is full, the devices of a pod may not be known, and a node may lose
devices while pods use them. Then a device holds more than it has, while another may look free although all of the
node is asked for. So what is missing on a device is taken from the others, from the one with most left first. The
sum of what is left then never exceeds what the node has less what is asked of it, whichever device each pod uses.

What is promised to a pod that waits is still held by pods that end. For a while it is asked for twice, and yet nothing
is missing: nominations are left out of the sum, and no other pod gets what is nominated.

It is a function of the amounts alone, so undoing a trial needs nothing of its own. Rejected: a further column with
sums by name, beside the devices: fractions and memory have no name, and a node could pass the sum and yet offer a
device on which nothing is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from shoal.devices.tiling import free_mask, holders

I = TypeVar("I", bound=np.signedinteger[Any])  # noqa: E741 - an integer type


def balanced(left: Sequence[int], nominated: Sequence[int] = ()) -> list[int]:
    """The amounts left per device, with what is missing on some taken from the others; none is negative. `nominated`
    has been taken from `left`, and is missing nowhere else."""
    if nominated:
        bound = balanced([each + amount for each, amount in zip(left, nominated, strict=True)])
        return [max(each - amount, 0) for each, amount in zip(bound, nominated, strict=True)]
    result = [max(each, 0) for each in left]
    missing = sum(result) - sum(left)
    while missing > 0 and (most := max(result)) > 0:
        taken = min(most, missing)
        result[result.index(most)] -= taken
        missing -= taken
    return result


def balanced_rows(left: NDArray[I], lines: Mapping[int, Sequence[int]]) -> NDArray[I]:
    """`left` with these lines balanced in place, each beside what is promised there."""
    for line, nominated in lines.items():
        left[line] = balanced(left[line].tolist(), nominated)
    return left


def free_masks(taken: Sequence[int], devices: Sequence[int], empty: int, nominated: Sequence[int] = ()) -> list[int]:
    """The free slices of each of these devices; slices with several holders cost free ones elsewhere. `nominated` is in
    `taken`, and costs none elsewhere."""
    if nominated:
        bound = free_masks([each - amount for each, amount in zip(taken, nominated, strict=True)], devices, empty)
        return [mask & free_mask(nominated[device], empty) for mask, device in zip(bound, devices, strict=True)]
    masks = [free_mask(taken[device], empty) for device in devices]
    missing = sum(holders(amount) for amount in taken if amount)
    missing -= sum((empty & ~mask).bit_count() for mask in masks)
    while missing > 0 and any(masks):
        fullest = max(range(len(masks)), key=lambda line: (masks[line].bit_count(), -line))
        masks[fullest] &= masks[fullest] - 1
        missing -= 1
    return masks
