"""Random draws that stay the same for ever: same seed and purpose, same numbers, on every machine and version.

Guarantees: only the raw bits of PCG64 are used, which numpy fixes by contract; its ready-made `shuffle` and `integers`
may change between versions. Each purpose draws from its own stream, so that asking for more clones does not move
the ranks of the nodes.

Rejected: `random.Random`, whose `shuffle` and `sample` are not fixed either and which draws one number at a time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Draws:
    """One stream of randomness for one purpose of one seed."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence([seed, *purpose.encode()]))

    def uniform(self, count: int) -> NDArray[np.float64]:
        """Numbers in [0, 1), from the upper 53 bits."""
        return (self._raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, limit: int, count: int) -> NDArray[np.int64]:
        return (self.uniform(count) * limit).astype(np.int64)

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Sorting random keys; two equal keys among 64 bits would cost one swap of fairness, not correctness."""
        return np.argsort(self._raw(count), kind="stable").astype(np.int64)

    def picks(self, weights: NDArray[np.float64], count: int) -> NDArray[np.int64]:
        """Indices drawn in proportion to the weights."""
        edges = np.cumsum(weights)
        found: NDArray[np.int64] = np.searchsorted(edges, self.uniform(count) * edges[-1], side="right")
        return np.minimum(found, len(weights) - 1)

    def _raw(self, count: int) -> NDArray[np.uint64]:
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)
