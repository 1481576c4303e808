"""Defines the protocol of scores: an integer per row, 0 to 100, higher is better, never normalised over the feasible
nodes.

A score normalised over the candidates changes for every node when one node changes, so nothing could be cached.
Rules return whole numbers because a fixed order among near-equals consolidates, while differences in the seventh
digit scatter pods at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.window import Window

Points = NDArray[np.int64]
Rows = NDArray[np.int64]

BEST = 100

NodeRule = Callable[[Window], Points]
RecordRule = Callable[[Sequence[int], Sequence[int]], int]
"""Points of one node, of its records: what is free, and what it has in all."""


class StaticScore(Protocol):
    """Reads labels and taints only."""

    def points(self, cluster: Cluster, ask: Ask, rows: Rows, /) -> Points | None:
        """Points per row, or None when the ask gives every node the same."""
        ...


class NodeScore(Protocol):
    """Reads what pods on the node change."""

    def compiled(self, cluster: Cluster, ask: Ask, /) -> NodeRule | None:
        """The rule for this ask, or None when the ask gives every node the same."""
        ...


@runtime_checkable
class RecordScore(NodeScore, Protocol):
    """Reads nothing but the records of a node, and can score a single one in plain integers.

    After a pod was placed, one node has changed. The operations of numpy on one row take ten times as long.
    """

    def of_record(self, cluster: Cluster, ask: Ask, /) -> RecordRule | None:
        """As `compiled`, with the same points."""
        ...


class DeviceChoice(Protocol):
    """Which devices of the chosen node."""

    def grant(self, cluster: Cluster, ask: Ask, row: int, draw: int, /) -> DeviceGrant | None:
        """A legal grant on the row; `draw` is a number to choose by for rules that choose at random."""
        ...
