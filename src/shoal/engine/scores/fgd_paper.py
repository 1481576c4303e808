"""Implements the comparison policies of the FGD paper that need no knowledge of the mix, to the digit.

Their constants (128 cores, 8 GPUs) and truncations are the published ones: these rules exist so that a comparison with
the paper is a comparison and not a rewrite. c and g are the node's free CPU and GPU compute in thousandths.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.asks import Ask, gpu_pair
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import FULL_MILLI
from shoal.engine.facts import CPU, GPU_MILLI, GPU_WHOLE
from shoal.engine.scores.rule import NodeRule, Points
from shoal.engine.tenants import TenantsColumn, tenant_kind
from shoal.engine.window import Window

_MOST_CPU = 128000
_MOST_GPU = 8000


class DotProd:
    """Prefers nodes where little is free in the directions in which the pod asks much."""

    def compiled(self, _cluster: Cluster, ask: Ask) -> NodeRule | None:
        cpu = ask.request("cpu") / _MOST_CPU
        gpu = ask.gpu_milli / _MOST_GPU

        def points(window: Window) -> Points:
            free = window.free
            product = (free[:, CPU] / _MOST_CPU) * cpu + (free[:, GPU_MILLI] / _MOST_GPU) * gpu
            return (100 * (1 - product / 2)).astype(np.int64)

        return points


class BestFit:
    """Prefers nodes that are left with little, CPU and GPU weighed alike."""

    def compiled(self, _cluster: Cluster, ask: Ask) -> NodeRule | None:
        cpu = ask.request("cpu")
        gpu = ask.gpu_milli

        def points(window: Window) -> Points:
            free = window.free
            left_cpu = 0.5 * (free[:, CPU] - cpu) / _MOST_CPU
            left_gpu = 0.5 * (free[:, GPU_MILLI] - gpu) / _MOST_GPU
            return (100 * (1 - (left_cpu + left_gpu))).astype(np.int64)

        return points


class GpuClustering:
    """Keeps pods of one kind (sharers, holders of n GPUs) together."""

    def __init__(self, cluster: Cluster) -> None:
        self._tenants = TenantsColumn(cluster)

    def compiled(self, _cluster: Cluster, ask: Ask) -> NodeRule | None:
        own = tenant_kind(ask)
        if own == 0:
            return None

        def points(window: Window) -> Points:
            base = 25 * (_MOST_GPU - window.free[:, GPU_MILLI]) // _MOST_GPU
            self._tenants.refresh()
            present = self._tenants.present.take(window.rows, axis=0)[:, 1:]
            kinds = np.add.reduce(present, axis=1)
            shared_points = np.where(kinds == 1, 75, 50)
            result: Points = base + np.where(present[:, own - 1], shared_points, np.where(kinds == 0, 25, 0))
            return result

        return points


class GpuPacking:
    """Prefers devices in use to empty devices on nodes in use to nodes not in use."""

    def compiled(self, _cluster: Cluster, ask: Ask) -> NodeRule | None:
        if ask.devices is None:
            return None
        gpus, milli = gpu_pair(ask)
        opens_whole = max(50 - gpus, 33)
        opens_one = max(50 - 1, 33)

        def points(window: Window) -> Points:
            whole = window.free[:, GPU_WHOLE]
            idle = whole == window.device_count
            on_idle = np.maximum(33 - whole, whole)
            if milli == FULL_MILLI:
                return np.where(idle, on_idle, opens_whole)
            compute = window.compute
            usable = np.where((compute >= milli) & (compute < FULL_MILLI), compute, FULL_MILLI)
            tightest = np.minimum.reduce(usable, axis=1).astype(np.int64)
            shared = np.maximum(100 - (tightest * 100 // FULL_MILLI) // 10, 50)
            return np.where(idle, on_idle, np.where(tightest == FULL_MILLI, opens_one, shared))

        return points
