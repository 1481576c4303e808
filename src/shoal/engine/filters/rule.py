"""Defines the protocol of filters: a verdict over rows, and a cause to count where a filter refuses rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.reasons import Code
from shoal.engine.window import Window

Verdicts = NDArray[np.bool_]
Rows = NDArray[np.int64]


class StaticFilter(Protocol):
    """Reads only what belongs to the node itself: labels, taints, name, model."""

    @property
    def code(self) -> Code: ...

    def passes(self, cluster: Cluster, ask: Ask, rows: Rows, /) -> Verdicts | None:
        """A verdict per row, or None when the ask does not care."""
        ...

    def detail(self, cluster: Cluster, ask: Ask, row: int, /) -> str:
        """What to name when this row was turned away."""
        ...


class NodeFilter(Protocol):
    """Reads what pods on the node change."""

    @property
    def code(self) -> Code: ...

    def compiled(self, cluster: Cluster, ask: Ask, /) -> Callable[[Window], Verdicts | None] | None:
        """The rule for this ask, or None when the ask does not care. The rule may answer None: every row passes."""
        ...

    def detail(self, cluster: Cluster, ask: Ask, row: int, /) -> str: ...


class Measure(NamedTuple):
    """How far rows are from hosting an ask."""

    unit: str
    """Empty where the rule's own words say more than the numbers do."""
    asked: int
    free: Rows
    total: Rows
    """What each row would have, were nothing taken."""


@runtime_checkable
class MeasuringFilter(Protocol):
    """A node filter that can say how much is missing."""

    def measure(self, cluster: Cluster, ask: Ask, rows: Rows, /) -> Measure | None: ...
