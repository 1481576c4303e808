"""Generates the input of one run: which pod arrives when, and in which order equal nodes are preferred.

Guarantees: pods are counted by row of the list they came in, nodes by *name*, so that the order of the node file
changes nothing. Clones are not copied: an arrival is the row number of its pod, and rows recur.

Rejected: carrying pod objects. Ten thousand arrivals of eight thousand pods are two small integer arrays, and two
runs can be compared with `==`.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray


class Arrivals(msgspec.Struct, frozen=True, eq=False):
    """`pod_rows[k]` is the row of the k-th pod to arrive, `ranks[i]` the rank of the i-th node in name order.

    Among equal scores the lowest rank wins.
    """

    pod_rows: NDArray[np.int64]
    ranks: NDArray[np.int64]
