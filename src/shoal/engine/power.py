"""Estimates the power of a node in watts, by the model of PWR (Lettich et al., 2025), as a score for placements.

A GPU draws its full power as soon as anything runs on it, and its idle power before. CPUs come in sockets of 16 cores
with two threads each; busy threads fill one socket after the other, and a socket with any work is active. Crude, and
enough: what it rewards is to finish GPUs and sockets in use before waking the next, and frugal models first.

Watts per model are a table handed in. The default has the pairs published with PWR and, for models it does not name,
the vendor's power limit with a tenth of it idle. Rejected: a curve over utilisation, which is not known in advance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.engine import facts
from shoal.engine.cluster import GPU_MODEL_LABEL, Cluster
from shoal.engine.device_demand import FULL_MILLI

Ints = NDArray[np.int64]

SOCKET_CPU_MILLI = 32_000
SOCKET_IDLE_WATTS = 15
SOCKET_ACTIVE_WATTS = 120


class Watts(msgspec.Struct, frozen=True):
    """Draw of one GPU: with nothing on it, and with anything."""

    idle: int
    full: int


GPU_WATTS: Mapping[str, Watts] = {
    "T4": Watts(10, 70),
    "L4": Watts(8, 72),
    "P100": Watts(25, 250),
    "V100": Watts(30, 300),
    "V100M16": Watts(30, 300),
    "V100M32": Watts(30, 300),
    "A10": Watts(30, 150),
    "A10G": Watts(30, 300),
    "A30": Watts(17, 165),
    "A40": Watts(30, 300),
    "A100": Watts(50, 400),
    "L40": Watts(30, 300),
    "L40S": Watts(35, 350),
    "H100": Watts(70, 700),
    "H200": Watts(70, 700),
    "B200": Watts(100, 1000),
    # Models that the public trace does not disclose, as PWR took them.
    "G2": Watts(30, 150),
    "G3": Watts(50, 400),
}

UNKNOWN_GPU = Watts(30, 300)
"""An unknown model must not look free."""

_PARTS = re.compile(r"[^A-Za-z0-9]+")


def watts_of(model: str, table: Mapping[str, Watts] = GPU_WATTS) -> Watts:
    """By the model's own name, or by the part of a product label that is one: `NVIDIA-A100-SXM4-80GB` is an A100."""
    for name in (model, *_PARTS.split(model)):
        if name in table:
            return table[name]
    return UNKNOWN_GPU


def active_sockets(cpu_milli: Ints) -> Ints:
    """Sockets that so much busy CPU keeps awake."""
    return -(-cpu_milli // SOCKET_CPU_MILLI)


class NodePower:
    """The power model over one cluster."""

    def __init__(self, cluster: Cluster, table: Mapping[str, Watts] = GPU_WATTS) -> None:
        self._cluster = cluster
        self._table = table
        self._epoch = 0
        self._idle: Ints = np.zeros(0, np.int64)
        self._rise: Ints = np.zeros(0, np.int64)

    def rise(self, rows: Ints) -> Ints:
        """Watts that one more GPU in use adds on each row."""
        models = self._models(rows)
        return self._rise.take(models)

    def of_rows(self, rows: Ints) -> Ints:
        """Watts that the nodes draw now."""
        cluster = self._cluster
        models = self._models(rows)
        count = cluster.devices.count.take(rows)
        compute = cluster.devices.free_rows(rows)
        present = np.arange(compute.shape[1]) < count[:, None]
        busy = (present & (compute < FULL_MILLI)).sum(axis=1)
        total = cluster.total[rows, facts.CPU]
        sockets = active_sockets(total)
        # An overcommitted node has no more sockets for it.
        active = np.minimum(active_sockets(total - cluster.free[rows, facts.CPU]), sockets)
        gpus = count * self._idle.take(models) + busy * self._rise.take(models)
        result: Ints = gpus + sockets * SOCKET_IDLE_WATTS + active * (SOCKET_ACTIVE_WATTS - SOCKET_IDLE_WATTS)
        return result

    def total(self) -> int:
        """Watts that the fleet draws now."""
        return int(self.of_rows(self._cluster.all_rows()).sum())

    def _models(self, rows: Ints) -> NDArray[np.int32]:
        column = self._cluster.labels.column(GPU_MODEL_LABEL)
        if len(column.values) != len(self._idle) or column.epoch != self._epoch:
            self._epoch = column.epoch
            watts = [watts_of(model, self._table) for model in column.values]
            self._idle = np.array([each.idle for each in watts], np.int64)
            self._rise = np.array([each.full - each.idle for each in watts], np.int64)
        return column.codes.take(rows)
