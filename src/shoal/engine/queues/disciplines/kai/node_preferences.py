"""Prefers nodes as KAI does: a profile of scores, each of which outranks all below it.

    preferred node affinity, pod affinity and spread of the pod
    a GPU that is shared already, for a share, unless shares are spread over GPUs
    a node without GPUs, for pods that ask for none
    density: the fewest free GPUs or cores, or the largest part of them free where work is spread

The node of an earlier promise comes before all of them (`Fitter`), and domains of a topology too.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_choice import TIGHTEST
from shoal.engine.device_demand import FULL_MILLI, PARTS, DeviceGrant, GpuShare, GpuShares, MemoryShares
from shoal.engine.devices.kinds import kind_of
from shoal.engine.devices.node_devices import NodeDeviceState
from shoal.engine.domains.soft import Soft
from shoal.engine.facts import CPU, GPU_MILLI
from shoal.engine.profile import Profile
from shoal.engine.scores.preferences import PreferredAffinity
from shoal.engine.scores.rule import NodeRule, Points, RecordRule, StaticScore
from shoal.engine.scores.strategies import FINEST
from shoal.engine.window import Window

_FAR = 1 << 20
"""Between one rule and the next that counts only among equals. All of it must stay below 2^30."""
_FINE_CORES = 6
"""Cores are compared in steps of 64 thousandths, so that nodes of 20,000 of them stay below that, too."""


def kai_profile(*, gpu_spread: bool = False, cpu_spread: bool = False, shares_spread: bool = False) -> Profile:
    """`nodeplacement` for pods with and without GPUs, and `gpuspread` or `gpupack`."""
    density = NodeDensity(gpu_spread=gpu_spread, cpu_spread=cpu_spread, shared_first=not shares_spread)
    static: tuple[tuple[StaticScore, int], ...] = ((PreferredAffinity(), 2 * _FAR),)
    devices = EmptiestDevice() if shares_spread else TIGHTEST
    return Profile("KAI", static, ((density, 1),), Soft(affinity=2 * _FAR, spread=2 * _FAR), devices)


def preferences_name(*, gpu_spread: bool, cpu_spread: bool, shares_spread: bool) -> str:
    """The name of a profile."""
    gpu, cpu, shares = ("spread" if each else "binpack" for each in (gpu_spread, cpu_spread, shares_spread))
    return f"KAI gpu={gpu} cpu={cpu} shares={shares}"


def profile_of(preferences: str) -> Profile:
    """The profile of a name of `preferences_name`; KAI's default one if the name is empty."""
    return _PROFILES[preferences] if preferences else kai_profile()


class NodeDensity(msgspec.Struct, frozen=True):
    """Pods with devices by free devices, the others by free cores and rather where there are no devices."""

    gpu_spread: bool = False
    cpu_spread: bool = False
    shared_first: bool = True
    """A share goes where a device is shared already."""

    def compiled(self, cluster: Cluster, ask: Ask) -> NodeRule | None:
        is_share = self.shared_first and isinstance(ask.devices, PARTS)
        on_devices = ask.devices is not None or bool(ask.claims)
        column, spread = (GPU_MILLI, self.gpu_spread) if on_devices else (CPU, self.cpu_spread)

        def points(window: Window) -> Points:
            total = window.total[:, column]
            free = np.maximum(window.free[:, column], 0)
            if spread:
                result = np.where(total > 0, free * FINEST // np.maximum(total, 1), 0)
            else:
                near = np.minimum(free if on_devices else free >> _FINE_CORES, _FAR // 2 - 1)
                result = np.where(total > 0, _FAR // 2 - near, 0)
            if not on_devices:
                result = result + np.where(window.total[:, GPU_MILLI] > 0, 0, _FAR)
            elif is_share:
                left = cluster.devices.compute[window.rows]
                share = _share_milli(cluster, ask, window.rows)[:, None]
                result = result + _FAR * ((left >= share) & (left < FULL_MILLI)).any(axis=1)
            return np.asarray(result, np.int64)

        return points

    def of_record(self, _cluster: Cluster, ask: Ask) -> RecordRule | None:
        if isinstance(ask.devices, PARTS):
            return None
        on_devices = ask.devices is not None or bool(ask.claims)
        column, spread = (GPU_MILLI, self.gpu_spread) if on_devices else (CPU, self.cpu_spread)

        def points(free: Sequence[int], total: Sequence[int]) -> int:
            there, left = total[column], max(free[column], 0)
            if there <= 0:
                result = 0
            elif spread:
                result = left * FINEST // there
            else:
                result = _FAR // 2 - min(left if on_devices else left >> _FINE_CORES, _FAR // 2 - 1)
            return result if on_devices or total[GPU_MILLI] > 0 else result + _FAR

        return points


def _share_milli(cluster: Cluster, ask: Ask, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """What a share takes of a device of each node."""
    if isinstance(ask.devices, MemoryShares):
        size = np.maximum(cluster.devices.memory_mib[rows].astype(np.int64), 1)
        return -(-ask.devices.mib * FULL_MILLI // size)
    milli = ask.devices.milli if isinstance(ask.devices, GpuShare | GpuShares) else 0
    return np.full(len(rows), milli, np.int64)


class EmptiestDevice:
    """A share goes where most is left."""

    def grant(self, cluster: Cluster, ask: Ask, row: int, draw: int) -> DeviceGrant | None:
        if not isinstance(ask.devices, GpuShare | GpuShares | MemoryShares):
            return TIGHTEST.grant(cluster, ask, row, draw)
        bench, kind = NodeDeviceState(cluster.devices, row), kind_of(ask.devices)
        if kind.tightest(bench, ask.devices) is None:
            return None
        forced: DeviceGrant = kind.forced(bench, ask.devices)
        return forced


_STRATEGIES = [(gpu, cpu, shares) for gpu in (False, True) for cpu in (False, True) for shares in (False, True)]
_PROFILES = {
    preferences_name(gpu_spread=gpu, cpu_spread=cpu, shares_spread=shares): kai_profile(
        gpu_spread=gpu, cpu_spread=cpu, shares_spread=shares
    )
    for gpu, cpu, shares in _STRATEGIES
}
