"""Computes the value of a piece of a GPU: the compute that could be allocated from it over time.

One-GPU pods come by at random, in the proportions of the mix. The owner of a piece of f hundredths may let a pod in,
earning its size, or wait for one that leaves less behind; after a number of visitors the piece is closed. The value of
that game is what the piece is worth. A rest of 190 thousandths that only rare pods can use is worth little; 810 that
a common pod fills exactly is worth nearly itself, and 900 is worth less than its size because the 810 pod would spoil
it. Value iteration over visitors gives the table; no future pod is known, only the mix.

Rejected: fragmentation's yes or no ("some pod fits into it"), which values 1000 and 999 alike, and a linear programme
over cutting patterns, whose prices jump when the counts of the mix move by one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from shoal.engine.device_demand import FULL_MILLI

GRAIN: Final = 10
"""Thousandths per step of the table."""
STEPS: Final = FULL_MILLI // GRAIN

Floats = NDArray[np.float64]


def piece_worth(chances: Floats, visitors: int) -> Floats:
    """Worth in thousandths of every piece size, for several owners at once.

    `chances[i, m]` is the chance that the next visitor of owner i asks for m hundredths of one GPU of a model that the
    owner has. Rows of the result belong to owners, columns to pieces of 0 to 100 hundredths.
    """
    distinct, place = np.unique(chances, axis=0, return_inverse=True)
    sizes = [size for size in range(1, STEPS + 1) if distinct[:, size].any()]
    worth = np.zeros((len(distinct), STEPS + 1))
    for _ in range(visitors):
        gain = np.zeros_like(worth)
        for size in sizes:
            # Let this visitor in only where what is left is still worth it.
            surplus = size * GRAIN + worth[:, : STEPS + 1 - size] - worth[:, size:]
            gain[:, size:] += distinct[:, size, None] * np.maximum(surplus, 0.0)
        worth += gain
    return worth[place.reshape(-1)]
