"""Scores placements by Shoal's own policy: prefers those, device included, that destroy the least value of free
capacity.

The loss of a placement is the worth of the node before, minus its worth after, minus the compute the pod uses, plus
the price of its model: nothing when the pod takes exactly what the room was worth, much when it spoils a whole device
for a sliver, takes the last CPU beside an empty GPU, breaks up eight GPUs that eight-GPU jobs want, or sits on a model
that others cannot do without. Losses are rounded to steps; within a step the fixed order of nodes fills one node first.

While the fleet is idle (see `Tables.is_idle`), a loss is no reason to leave a node that already has work: nodes with
GPUs in use come before the others, and the loss decides among equals. Otherwise small differences of the balance would
spread pods over idle nodes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_choice import TIGHTEST
from shoal.engine.device_demand import FULL_MILLI, DeviceGrant, GpuShare, WholeGpus, compute_grant
from shoal.engine.facts import GPU_MILLI
from shoal.engine.pod_mix import PodMix
from shoal.engine.scores.fullest import fullest
from shoal.engine.scores.rule import NodeRule, Points
from shoal.engine.window import Window
from shoal.engine.worth.column import PIECES, WorthColumns
from shoal.engine.worth.piece_worth import GRAIN, STEPS
from shoal.engine.worth.tables import UNIT_BITS, UNITS, Tables, WorthParameters

Ints = NDArray[np.int64]

_NOT_HERE: Final = -(1 << 36)
"""Far below any loss, and far above what would make a key infeasible: whether a node fits is not for scores to say."""
IN_USE: Final = 1 << 11
"""Steps of loss that a node with GPUs in use is preferred by on an idle fleet: more than a pod loses there."""
_UNIT_SHIFT: Final = np.array(UNIT_BITS)
_GRAIN: Final = np.array(GRAIN, np.int32)


class LeastLoss:
    """The score and the device choice over one cluster and one mix."""

    def __init__(self, cluster: Cluster, mix: PodMix, temper: WorthParameters | None = None) -> None:
        self.tables = Tables(cluster, mix, temper or WorthParameters())
        self.columns = WorthColumns(cluster, self.tables)
        self._cluster = cluster
        self._rules: dict[tuple[int, int], _ShareRule] = {}

    def renewed(self) -> int:
        """Follow the fleet; the number changes when keys made before are stale."""
        return self.tables.renewed()

    def compiled(self, cluster: Cluster, ask: Ask) -> NodeRule | None:
        match ask.devices:
            case GpuShare(milli):
                return self._share_rule(ask.request("cpu"), milli).points
            case WholeGpus(count):
                return _WholeRule(cluster, self.tables, self.columns, ask.request("cpu"), count).points
            case None:
                return _WholeRule(cluster, self.tables, self.columns, ask.request("cpu"), 0).points
            case _:
                return fullest(cluster, ask)

    def grant(self, cluster: Cluster, ask: Ask, row: int, draw: int) -> DeviceGrant | None:
        """The device on which the share costs least, the first of equals."""
        if not isinstance(ask.devices, GpuShare):
            return TIGHTEST.grant(cluster, ask, row, draw)
        milli = ask.devices.milli
        device = self._share_rule(ask.request("cpu"), milli).device(cluster, row)
        return compute_grant((device,), milli) if device >= 0 else TIGHTEST.grant(cluster, ask, row, draw)

    def _share_rule(self, cpu_milli: int, milli: int) -> _ShareRule:
        rule = self._rules.get((cpu_milli, milli))
        if rule is None:
            rule = self._rules[cpu_milli, milli] = _ShareRule(
                self._cluster, self.tables, self.columns, cpu_milli, milli
            )
        return rule


class _Rule:
    """What both kinds of ask share: tables of their own per epoch, and the balance of what is left."""

    def __init__(self, cluster: Cluster, tables: Tables, columns: WorthColumns, cpu_milli: int, gpu_milli: int) -> None:
        self._cluster = cluster
        self._tables = tables
        self._columns = columns
        self._cpu = cpu_milli
        self._gpu = gpu_milli
        self._epoch = 0
        self._balance_after: Ints = np.zeros(0, np.int64)

    def _refresh(self) -> None:
        self._columns.refresh()
        if self._epoch != self._tables.epoch:
            self._learn()
            self._epoch = self._tables.epoch

    def _learn(self) -> None:
        self._balance_after = self._tables.balance_less(self._cpu, self._gpu)

    def _credit(self) -> Ints:
        """By model: what the pod is credited, and half a step to round by."""
        return (self._tables.used(self._gpu) + UNITS // 2)[:, None]

    def _balanced(self, rows: Ints, worth: Points) -> Points:
        """Steps of worth kept, once the balance of free CPU and GPU is counted in. Consumes `worth`."""
        at = self._columns.balance_at[rows]
        worth -= self._tables.balance[at]
        worth += self._balance_after[at]
        worth >>= _UNIT_SHIFT
        if self._gpu and self._tables.is_idle:
            cluster = self._cluster
            worth += IN_USE * (cluster.free[rows, GPU_MILLI] < cluster.total[rows, GPU_MILLI])
        return worth


class _WholeRule(_Rule):
    """Points for taking some empty devices, or none."""

    def __init__(self, cluster: Cluster, tables: Tables, columns: WorthColumns, cpu_milli: int, count: int) -> None:
        super().__init__(cluster, tables, columns, cpu_milli, count * FULL_MILLI)
        self._count = count
        self._taken: Ints = np.zeros(0, np.int64)

    def points(self, window: Window) -> Points:
        self._refresh()
        rows = window.rows
        return self._balanced(rows, self._taken[self._columns.block_at[rows]])

    def _learn(self) -> None:
        """Per model and number of empty devices: what taking some of them changes."""
        super()._learn()
        tables = self._tables
        block = tables.block
        count = self._count
        change = np.full_like(block, _NOT_HERE)
        if count < block.shape[1]:
            change[:, count:] = block[:, : block.shape[1] - count] - block[:, count:]
        change -= count * tables.piece[:, STEPS:]
        self._taken = (change + self._credit()).reshape(-1)


class _ShareRule(_Rule):
    """Points for taking a share of one device: the best that the node offers."""

    def __init__(self, cluster: Cluster, tables: Tables, columns: WorthColumns, cpu_milli: int, milli: int) -> None:
        super().__init__(cluster, tables, columns, cpu_milli, milli)
        self._started: Ints = np.zeros(0, np.int64)
        self._opened: Ints = np.zeros(0, np.int64)

    def points(self, window: Window) -> Points:
        self._refresh()
        columns = self._columns
        rows = window.rows
        left = window.compute
        # Widened in a step of its own: an addition that has to convert as it goes costs five times as much. One line
        # per device slot from here on, because the largest of few long lines is found sooner than of many short ones.
        at = (left // _GRAIN).T.astype(np.int64, order="C")
        at += columns.piece_start[rows]
        changes = self._started.take(at)
        if self._gpu % GRAIN:
            # The table cannot tell 333 from 330: it may take a device for large enough that is not.
            changes[self._gpu > left.T] = _NOT_HERE
        started = np.maximum.reduce(changes, axis=0)
        # A device in use that fits, or opening an empty one.
        return self._balanced(rows, np.maximum(started, self._opened[columns.block_at[rows]]))

    def device(self, cluster: Cluster, row: int) -> int:
        """The device to take on a row, or -1."""
        self._refresh()
        start = self._columns.piece_start.item(row)
        started = self._started
        opening = self._opened.item(self._columns.block_at.item(row))
        best = -1
        key = (_NOT_HERE >> UNIT_BITS, 0)
        for device, left in enumerate(cluster.devices.free(row)):
            if left < self._gpu:
                continue
            change = opening if left == FULL_MILLI else started.item(start + left // GRAIN)
            # In steps of noise, as nodes are compared; of equals the one with less left: empty devices stay empty.
            if (steps := (change >> UNIT_BITS, -left)) > key:
                best, key = device, steps
        return best

    def _learn(self) -> None:
        """Per model: what the share changes on a device in use, and what opening an empty device changes."""
        super()._learn()
        tables = self._tables
        piece = tables.piece
        block = tables.block
        change = np.full_like(piece, _NOT_HERE)
        for left in range(self._gpu // GRAIN, PIECES):
            after = max(left * GRAIN - self._gpu, 0) // GRAIN
            change[:, left] = piece[:, after] - piece[:, left]
        change += self._credit()
        opened = np.full_like(block, _NOT_HERE)
        opened[:, 1:] = change[:, STEPS:] + block[:, :-1] - block[:, 1:]
        change[:, STEPS] = _NOT_HERE
        self._started = change.reshape(-1)
        self._opened = opened.reshape(-1)
