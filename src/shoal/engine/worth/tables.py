"""Computes the value of a node's free capacity, as tables over the few facts that it depends on.

    worth(node) = sum over devices of piece[model][free]   what one-GPU pods would make of each device (`patience`)
                + block[model][empty devices]              what pods of several GPUs would make of empty devices
                + price[model] x free GPU compute          what is scarce is dear: demand pinned to the model / supply
                + 0.5 x G x C / (G + C)                    G free GPU, C free CPU counted in GPUs at the CPU per GPU
                                                           that the mix asks for: either is worth little alone

A placement costs the worth it destroys beyond the compute it uses. Piece tables depend on the mix only; prices and the
weight of blocks depend on what is still free, and are renewed when that has changed by 15 %. Finer tables, with a line
per amount of CPU left, gained 0.05 points of allocation and cost twice the time: the balance term says nearly the same.

Tables hold whole numbers, 1024 to the step below which differences are noise: sums are exact in any order, so keys are
the same on every machine and however many nodes were computed together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shoal.engine import facts
from shoal.engine.cluster import GPU_MODEL_LABEL, Cluster
from shoal.engine.device_demand import FULL_MILLI
from shoal.engine.pod_mix import PodClass, PodMix
from shoal.engine.worth.piece_worth import GRAIN, STEPS, piece_worth

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNIT_BITS: Final = 10
UNITS: Final = 1 << UNIT_BITS
"""Table units in one step of noise."""
RATIO_BITS: Final = 16

BALANCE_GRAIN: Final = 25
"""Thousandths of a GPU to a step of the balance table: half the noise."""
_MOST_BALANCED: Final = 32
"""Devices up to which free CPU and GPU are weighed against each other; a node with more free counts as having these."""

_LEAST: Final = 1e-9
_MOST_PRESSURE: Final = 9.0


@dataclass(frozen=True, slots=True)
class WorthParameters:
    """The policy's few constants, found on five public pod lists and checked on thirteen look-alikes."""

    sharers_awaited: int = 35
    """Patience: a piece stays open for as many visitors as bring this many sharing pods."""
    most_visitors: int = 100
    price_of_scarcity: float = 0.2
    most_price: float = 1.0
    weight_of_blocks: float = 2.0
    pressure_of_blocks: float = 3.0
    safety_of_blocks: float = 3.0
    """Expected pods of several GPUs are few and come at random: count this many standard deviations more."""
    most_weight_of_blocks: float = 20.0
    weight_of_balance: float = 0.5
    renew_when_free_falls_to: float = 0.85
    idle_up_to_load: float = 0.5
    """The fleet is idle while no more than this share of its GPU compute is in use, and the mix requests no more."""
    noise_milli: int = 45
    """Differences below this are noise: they tie, and the fixed order of nodes consolidates."""


@dataclass(frozen=True, slots=True)
class _BlockClass:
    """Pods of one number of GPUs and one amount of CPU."""

    cpu_milli: int
    pods: int
    """They, and all pods of as many GPUs that need more CPU: the room for those is among the room for these."""
    share: Floats
    """By model: the share of all pods that are such pods and may use the model."""


class Tables:
    """Worth tables for one mix on one cluster; `renewed` follows what is still free."""

    def __init__(self, cluster: Cluster, mix: PodMix, temper: WorthParameters) -> None:
        self._cluster = cluster
        self._temper = temper
        self._gpu_classes = [(c, count) for c, count in mix.counts if c.gpus > 0]
        self._total = max(mix.total, 1)
        self._requested = sum(c.total_gpu_milli * count for c, count in self._gpu_classes)
        cpu = sum(c.cpu_milli * count for c, count in self._gpu_classes)
        self._gpu_per_cpu = round(self._requested / cpu * (1 << RATIO_BITS)) if cpu else 0
        self.units_per_milli = UNITS / temper.noise_milli
        self.balance: Ints = np.zeros(0, np.int64)
        """Units by free CPU and free GPU, both in grains of GPU; flat, `balance_width` to a line of equal CPU."""
        self._balance_padded = self.balance
        self.balance_width = 0
        self.balance_rows = 0
        self.models: list[str] = []
        self.piece: Ints = np.zeros((0, STEPS + 1), np.int64)
        """Units by model and free hundredths of a device."""
        self.block: Ints = np.zeros((0, 0), np.int64)
        """Units by model and number of empty devices."""
        self.price: Floats = np.zeros(0)
        self.epoch = 0
        """Counts renewals: whatever was derived from older tables is worth nothing."""
        self.is_idle = True
        """Whether losses are no reason yet to prefer a node: the pods of the mix leave much of the fleet free."""
        self.contended: frozenset[str] = frozenset()
        """Models that some pods of the mix need, and that the mix could fill."""
        self._built_at_free = 0
        self._blocks_by_size: dict[int, list[_BlockClass]] = {}

    def renewed(self) -> int:
        """Bring the tables up to date if much was taken or came free, or a new model or wider node appeared."""
        free = self._cluster.gpu_free_milli
        least = self._temper.renew_when_free_falls_to
        if (
            self._models_now() != self.models
            or self.block.shape[1] != self._width_now()
            or free < self._built_at_free * least
            or free * least > self._built_at_free
        ):
            self._renew()
        return self.epoch

    def cpu_in_gpu(self, cpu_milli: int) -> int:
        """CPU counted in thousandths of the GPUs that it could serve."""
        return cpu_milli * self._gpu_per_cpu >> RATIO_BITS

    def cpu_in_gpus(self, cpu_milli: Ints) -> Ints:
        return cpu_milli * self._gpu_per_cpu >> RATIO_BITS

    def balance_less(self, cpu_milli: int, gpu_milli: int) -> Ints:
        """The balance table as it would be for a node after giving up that much: a view, read at the same place."""
        step = self.cpu_in_gpu(cpu_milli) // BALANCE_GRAIN * self.balance_width + gpu_milli // BALANCE_GRAIN
        # What lies before the table's beginning is worth what nothing is worth: free CPU may have been cut off at the
        # table's end, or the facts contradict each other.
        return self._balance_padded[max(len(self.balance) - step, 0) :]

    def used(self, milli: int) -> Ints:
        """By model: credit for compute that a pod uses, less the price of the model there."""
        return np.rint((1.0 - self.price) * milli * self.units_per_milli).astype(np.int64)

    def _models_now(self) -> list[str]:
        """By code: other names, or the same in another order, and every table by model is to be built anew."""
        return self._cluster.labels.column(GPU_MODEL_LABEL).values

    def _width_now(self) -> int:
        return self._cluster.devices.width + 1

    def _renew(self) -> None:
        if self._models_now() != self.models or self.block.shape[1] != self._width_now():
            self.models = list(self._models_now())
            self._build_pieces()
            self._build_blocks()
            self._build_balance()
        self._renew_prices()
        self._renew_blocks()
        self._renew_load()
        self._built_at_free = self._cluster.gpu_free_milli
        self.epoch += 1

    def _allowed(self, allowed: frozenset[str]) -> NDArray[np.bool_]:
        return np.array([not allowed or model in allowed for model in self.models])

    def _build_pieces(self) -> None:
        chances = np.zeros((len(self.models), STEPS + 1))
        devices = sum(count * c.gpus for c, count in self._gpu_classes)
        sharers = sum(count for c, count in self._gpu_classes if c.gpu_milli < FULL_MILLI)
        for pod_class, count in self._gpu_classes:
            if pod_class.gpus == 1:
                size = -(-pod_class.gpu_milli // GRAIN)
                chances[self._allowed(pod_class.model_set), size] += count / devices
        most = self._temper.most_visitors
        visitors = min(round(self._temper.sharers_awaited * devices / sharers), most) if sharers else most
        self.piece = self._units(piece_worth(chances, visitors))

    def _build_balance(self) -> None:
        """G x C / (G + C) on a grid. Nodes with CPU for more than twice the widest node's GPUs count as having that."""
        # The table grows with the square of the width: a node that advertises hundreds must not cost gigabytes.
        grains = min(self._cluster.devices.width, _MOST_BALANCED) * FULL_MILLI // BALANCE_GRAIN
        self.balance_width = grains + 1
        self.balance_rows = 2 * grains + 1
        gpu = np.arange(self.balance_width) * float(BALANCE_GRAIN)
        cpu = np.arange(self.balance_rows)[:, None] * float(BALANCE_GRAIN)
        both = self._temper.weight_of_balance * gpu * cpu / np.maximum(gpu + cpu, 1.0)
        table = self._units(both).reshape(-1)
        self._balance_padded = np.concatenate((np.full_like(table, table[0]), table))
        self.balance = self._balance_padded[len(table) :]

    def _build_blocks(self) -> None:
        """Group the classes of several GPUs by size and CPU, the least CPU first."""
        self._blocks_by_size = {}
        for size in sorted({c.gpus for c, _ in self._gpu_classes if c.gpus > 1}):
            classes = [(c, count) for c, count in self._gpu_classes if c.gpus == size]
            needs = sorted({c.cpu_milli for c, _ in classes})
            self._blocks_by_size[size] = [self._block_class(classes, need) for need in needs]

    def _block_class(self, classes: list[tuple[PodClass, int]], cpu_milli: int) -> _BlockClass:
        share = np.zeros(len(self.models))
        for pod_class, count in classes:
            if pod_class.cpu_milli == cpu_milli:
                share[self._allowed(pod_class.model_set)] += count / self._total
        return _BlockClass(cpu_milli, sum(count for c, count in classes if c.cpu_milli >= cpu_milli), share)

    def _remaining(self) -> float:
        """The share of one mix's worth of pods for which there is still room: the demand to expect."""
        return max(self._cluster.gpu_free_milli, 0) / self._requested if self._requested else 0.0

    def _renew_load(self) -> None:
        cluster = self._cluster
        rows = cluster.rows
        codes = cluster.labels.column(GPU_MODEL_LABEL).codes[:rows]
        by_model = np.bincount(codes, weights=cluster.total[:rows, facts.GPU_MILLI], minlength=len(self.models))
        capacity = float(by_model.sum())
        load = max(self._requested, capacity - cluster.gpu_free_milli)
        self.is_idle = not self._requested or load <= self._temper.idle_up_to_load * capacity
        needed = np.zeros(len(self.models), np.bool_)
        for pod_class, _ in self._gpu_classes:
            allowed = self._allowed(pod_class.model_set)
            if by_model[~allowed].any():
                needed |= allowed
        contended = needed & (by_model < self._requested)
        self.contended = frozenset(np.array(self.models)[contended].tolist())

    def _renew_prices(self) -> None:
        cluster = self._cluster
        rows = cluster.rows
        codes = cluster.labels.column(GPU_MODEL_LABEL).codes[:rows]
        free = np.bincount(codes, weights=cluster.free[:rows, facts.GPU_MILLI], minlength=len(self.models))
        supply = np.maximum(free, _LEAST)
        demand = np.zeros(len(self.models))
        remaining = self._remaining()
        for pod_class, count in self._gpu_classes:
            if not pod_class.models:
                continue
            wanted = self._allowed(pod_class.model_set)
            among = supply[wanted].sum()
            if among > 0:
                demand[wanted] += remaining * count * pod_class.total_gpu_milli * supply[wanted] / among
        self.price = np.minimum(self._temper.price_of_scarcity * demand / supply, self._temper.most_price)

    def _renew_blocks(self) -> None:
        cluster = self._cluster
        rows = cluster.rows
        empty = cluster.free[:rows, facts.GPU_WHOLE]
        cpu = cluster.free[:rows, facts.CPU]
        codes = cluster.labels.column(GPU_MODEL_LABEL).codes[:rows]
        counts = np.arange(self._width_now())
        total = np.zeros((len(self.models), len(counts)))
        for size, classes in self._blocks_by_size.items():
            some = empty >= size
            blocks, cores, models = empty[some] // size, cpu[some], codes[some]
            usable = np.where(counts >= size, FULL_MILLI * counts, 0)
            weight = 0.0
            for each in classes:
                room = np.maximum(np.minimum(blocks, cores // max(each.cpu_milli, 1)), 0)
                # A node with the CPU for these is wanted by those that need less as well.
                weight = max(weight, self._weight_of_blocks(each.pods, int(room.sum())))
                has_room = np.bincount(models, weights=room, minlength=len(self.models)) > 0
                total += np.outer(np.where(has_room, each.share, 0.0) * weight, usable)
        self.block = self._units(total)

    def _weight_of_blocks(self, pods: int, room: int) -> float:
        """By the pressure of the pods still to be expected on the room for them."""
        temper = self._temper
        expected = self._remaining() * pods
        feared = expected + temper.safety_of_blocks * expected**0.5
        pressure: float = (feared / room if room else _MOST_PRESSURE) ** temper.pressure_of_blocks
        return min(temper.weight_of_blocks * pressure, temper.most_weight_of_blocks)

    def _units(self, milli: Floats) -> Ints:
        return np.rint(milli * self.units_per_milli).astype(np.int64)
