"""Scores placements by FGD: prefers those, device included, that increase fragmentation least.

Points are the published int(100 x sigmoid((F before - F after) / 1000)); a sharing pod tries every device that holds
it, the node gets the best points and the device is the first that reached them. That coarse scale, together with the
fixed order of nodes, is half of why the policy packs well: small differences tie and ties fill one node first.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import NDArray

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_choice import TIGHTEST
from shoal.engine.device_demand import FULL_MILLI, DeviceGrant, GpuShare, WholeGpus, compute_grant
from shoal.engine.facts import CPU
from shoal.engine.fragmentation import Fragmentation, FragmentationColumn
from shoal.engine.pod_mix import PodMix
from shoal.engine.scores.fullest import fullest
from shoal.engine.scores.rule import NodeRule, Points, Rows
from shoal.engine.window import Window

POPULAR_SHARE = 0.95


class FragmentationGradient:
    """The FGD score over one cluster and one mix of typical pods."""

    def __init__(self, cluster: Cluster, mix: PodMix, share: float = POPULAR_SHARE) -> None:
        self.fragmentation = Fragmentation(cluster, mix.popular(share))
        self.column = FragmentationColumn(cluster, self.fragmentation)

    def compiled(self, cluster: Cluster, ask: Ask) -> NodeRule | None:
        match ask.devices:
            case GpuShare(milli):
                return lambda window: np.maximum.reduce(self._per_device(ask, milli, window), axis=1)
            case WholeGpus(count):
                return lambda window: self._whole(ask, count, window)
            case None:
                return lambda window: self._whole(ask, 0, window)
            case _:
                return fullest(cluster, ask)

    def grant(self, cluster: Cluster, ask: Ask, row: int, draw: int) -> DeviceGrant | None:
        if not isinstance(ask.devices, GpuShare):
            return TIGHTEST.grant(cluster, ask, row, draw)
        milli = ask.devices.milli
        device = self._best_device(cluster, row, cluster.free.item(row, CPU) - ask.request("cpu"), milli)
        return compute_grant((device,), milli) if device >= 0 else TIGHTEST.grant(cluster, ask, row, draw)

    def _best_device(self, cluster: Cluster, row: int, cpu_milli: int, milli: int) -> int:
        """The first device with the best points, or -1."""
        self.column.refresh()
        before = self.column.values.item(row)
        pieces = cluster.devices.free(row)
        best, most = -1, -1
        tried: set[int] = set()
        for device, piece in enumerate(pieces):
            if piece < milli or piece in tried:
                continue
            tried.add(piece)
            after = pieces.copy()
            after[device] -= milli
            gain = before - self.fragmentation.of_one(row, cpu_milli, after)
            points = int(100 * (1 / (1 + exp(-gain / 1000))))
            if points > most:
                best, most = device, points
        return best

    def _before(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        self.column.refresh()
        return self.column.values.take(rows)

    def _whole(self, ask: Ask, count: int, window: Window) -> Points:
        """Points when the pod takes `count` empty devices, or none."""
        fragmentation = self.fragmentation
        compute = window.compute
        models = fragmentation.models(window.rows)
        around, ranks = fragmentation.surroundings(models, window.free[:, CPU] - ask.request("cpu"))
        taken = fragmentation.whole_print(count)
        prints = around + fragmentation.pieces(compute) - taken

        def states(lost: Rows) -> tuple[Rows, Rows, NDArray[np.int32]]:
            left = compute[lost]
            empty = left == FULL_MILLI
            return models[lost], ranks[lost], np.where(empty & (np.cumsum(empty, axis=1) <= count), 0, left)

        after = fragmentation.of_states(prints, states)
        return _points(self._before(window.rows) - after)

    def _per_device(self, ask: Ask, milli: int, window: Window) -> Points:
        """Points for each device; -1 where the pod does not fit."""
        fragmentation = self.fragmentation
        compute = window.compute
        line, device = (compute >= milli).nonzero()
        result = np.full(compute.shape, -1, np.int64)
        if len(line) == 0:
            return result
        models = fragmentation.models(window.rows)
        around, ranks = fragmentation.surroundings(models, window.free[:, CPU] - ask.request("cpu"))
        whole = around + fragmentation.pieces(compute)
        before = compute[line, device]
        pieces = fragmentation.piece_print
        prints = whole.take(line) - pieces.take(before) + pieces.take(before - milli)

        def states(lost: Rows) -> tuple[Rows, Rows, NDArray[np.int32]]:
            lines = line[lost]
            left = compute.take(lines, axis=0)
            left[np.arange(len(lost)), device[lost]] -= milli
            return models[lines], ranks[lines], left

        after = fragmentation.of_states(prints, states)
        result[line, device] = _points(self._before(window.rows).take(line) - after)
        return result


def _points(gain: NDArray[np.float64]) -> Points:
    return (100 * (1 / (1 + np.exp(-gain / 1000)))).astype(np.int64)
