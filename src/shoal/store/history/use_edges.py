"""The slots in which a holding begins or ends have only its own samples: those before and after are of other pods."""

from __future__ import annotations

import numpy as np

from shoal.cost.records import Holding
from shoal.store.history.sample_blocks import Block, Values, means


def with_own_edges(slots: Block, samples: Block, holding: Holding, slot_ms: int) -> Values:
    """`slots`: the means of the devices of a holding, of which the first and the last may have to be computed again."""
    found = slots.values
    for edge in (holding.start_ms, holding.end_ms):
        if edge is None or edge % slot_ms == 0:
            continue
        start = edge // slot_ms * slot_ms
        place = int(np.searchsorted(slots.times_ms, start))
        if place == len(slots.times_ms) or slots.times_ms[place] != start:
            continue
        end = start + slot_ms if holding.end_ms is None else min(start + slot_ms, holding.end_ms)
        inside = (samples.times_ms >= max(start, holding.start_ms)) & (samples.times_ms < end)
        own = Block(samples.devices, samples.times_ms[inside], samples.values[:, inside])
        found = found.copy()
        found[:, place] = means(own, [start], slot_ms).values[:, 0]
    return found
