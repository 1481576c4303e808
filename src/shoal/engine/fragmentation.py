"""Computes fragmentation as the FGD paper defines it: GPU compute on a node that the typical pods could not use.

For each typical class the node's free compute is lost entirely if the class cannot run there (too few devices with
enough left, too little CPU, wrong model), else the pieces too small for it are lost; F is the mean over the classes.
Sums run in the published order of classes and cases, in doubles and one addition at a time, because the published
results hang on the last bit of ties.

F depends on little of a node: its model, which classes its free CPU still serves, and the multiset of free pieces.
So each state is computed once and found again by a 64-bit fingerprint (a random number per piece size, summed: order
of devices does not matter). Two states sharing one are about as likely as a disk error; rejected was a dictionary of
tuples, ten times slower to ask for a hundred states at a time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shoal.engine.cluster import GPU_MODEL_LABEL, Cluster
from shoal.engine.device_demand import FULL_MILLI
from shoal.engine.facts import CPU
from shoal.engine.labels import LabelColumn
from shoal.engine.pod_mix import PodClass

_CACHE_BITS = 18
_SEED = 0x5A0A1

_SLOT_LOW = (1 << _CACHE_BITS) - 1
_SLOT_MASK = np.uint64(_SLOT_LOW)
_ALL_BITS = (1 << 64) - 1

_CASES = np.array([1, 1, 2, 0, 3, 3, 4, 4])
"""Which of the six sums a class adds to, by: lacks GPU (1) + lacks CPU (2) + asks for no GPU (4)."""
_FEW = 4

Floats = NDArray[np.float64]
Prints = NDArray[np.uint64]
Rows = NDArray[np.int64]
States = Callable[[Rows], tuple[Rows, Rows, NDArray[np.int32]]]


class Fragmentation:
    """F of any node state for one set of typical classes."""

    def __init__(self, cluster: Cluster, typical: tuple[tuple[PodClass, float], ...]) -> None:
        self._cluster = cluster
        self._classes = [pod_class for pod_class, _ in typical]
        self._weights = np.array([weight for _, weight in typical])
        cpu = np.array([c.cpu_milli for c in self._classes], np.int64)
        self._cpu_steps = np.unique(cpu)
        self._cpu_rank = np.searchsorted(self._cpu_steps, cpu, side="right")
        self._gpus = np.array([c.gpus for c in self._classes], np.int64)
        self._cpu_only = self._gpus == 0
        self._cpu_only_bit = 4 * self._cpu_only
        sizes = np.arange(FULL_MILLI + 1)
        milli = np.array([c.gpu_milli for c in self._classes], np.int64)
        self._big_enough = (sizes[:, None] >= milli[None, :]).astype(np.int64)
        self._too_small = np.where(self._big_enough == 0, sizes[:, None], 0).astype(np.int64)
        random = np.random.default_rng(_SEED)
        self.piece_print: Prints = random.integers(0, 1 << 63, FULL_MILLI + 1, np.uint64)
        self.piece_print[0] = 0
        self._piece_print_list: list[int] = self.piece_print.tolist()
        self._cpu_step_list: list[int] = self._cpu_steps.tolist()
        self._cpu_print: Prints = random.integers(0, 1 << 63, len(self._cpu_steps) + 1, np.uint64)
        self._model_random = np.random.default_rng(_SEED + 1)
        self._epoch = 0
        self._model_print: Prints = np.zeros(0, np.uint64)
        self._model_fits: NDArray[np.bool_] = np.zeros((0, len(self._classes)), np.bool_)
        self._some_foreign = False
        self._known_print: Prints = np.zeros(1 << _CACHE_BITS, np.uint64)
        self._known_value: Floats = np.full(1 << _CACHE_BITS, np.nan)

    def models(self, rows: Rows) -> Rows:
        """Model numbers of the rows."""
        column = self._cluster.labels.column(GPU_MODEL_LABEL)
        if len(column.values) > len(self._model_print) or column.epoch != self._epoch:
            self._learn_models(column)
        return column.codes.take(rows).astype(np.int64)

    def surroundings(self, models: Rows, cpu_milli: Rows) -> tuple[Prints, Rows]:
        """The part of the fingerprint that is not devices, and the rank of the free CPU among the classes' needs."""
        ranks = self._cpu_steps.searchsorted(cpu_milli, side="right")
        return self._cpu_print.take(ranks) + self._model_print.take(models), ranks

    def pieces(self, compute: NDArray[np.int32]) -> Prints:
        """The part of the fingerprint that is devices, for one line of free pieces per row."""
        prints: Prints = np.add.reduce(self.piece_print.take(compute), axis=1)
        return prints

    def whole_print(self, count: int) -> np.uint64:
        """The part of the fingerprint that `count` empty devices make."""
        return np.uint64(count * int(self.piece_print[FULL_MILLI]) % (1 << 64))

    def of_states(self, prints: Prints, states: States) -> Floats:
        """F of states: remembered, or computed now. `states` yields (models, CPU ranks, free pieces) of some lines."""
        slots = (prints & _SLOT_MASK).astype(np.int64)
        values = self._known_value.take(slots)
        unknown = self._known_print.take(slots) != prints
        if not unknown.any():
            return values
        lost = unknown.nonzero()[0]
        if len(lost) == 1:
            values[lost] = self._learn(prints[lost], *states(lost))
            return values
        # Most nodes of a fleet are in the same few states: compute each once.
        fresh, first, place = np.unique(prints[lost], return_index=True, return_inverse=True)
        values[lost] = self._learn(fresh, *states(lost[first]))[place]
        return values

    def _learn(self, prints: Prints, models: Rows, cpu_ranks: Rows, compute: NDArray[np.int32]) -> Floats:
        values = self._exact(models, cpu_ranks, compute)
        slots = (prints & _SLOT_MASK).astype(np.int64)
        self._known_print[slots] = prints
        self._known_value[slots] = values
        return values

    def of_one(self, row: int, cpu_milli: int, left: list[int]) -> float:
        """F of one node if this CPU and these pieces were free: a few look-ups, where numpy takes twenty calls."""
        column = self._cluster.labels.column(GPU_MODEL_LABEL)
        if len(column.values) > len(self._model_print) or column.epoch != self._epoch:
            self._learn_models(column)
        model = column.codes.item(row)
        rank = bisect_right(self._cpu_step_list, cpu_milli)
        pieces = self._piece_print_list
        print_ = self._cpu_print.item(rank) + self._model_print.item(model) + sum([pieces[piece] for piece in left])
        print_ &= _ALL_BITS
        slot = print_ & _SLOT_LOW
        if self._known_print.item(slot) == print_:
            return self._known_value.item(slot)
        prints = np.array([print_], np.uint64)
        return self._learn(prints, np.array([model]), np.array([rank]), np.array([left], np.int32)).item(0)

    def of_rows(self, rows: Rows) -> Floats:
        """F of nodes as they are."""
        models = self.models(rows)
        compute = self._cluster.devices.free_rows(rows)
        prints, ranks = self.surroundings(models, self._cluster.free[rows, CPU])
        return self.of_states(prints + self.pieces(compute), lambda lost: (models[lost], ranks[lost], compute[lost]))

    def _exact(self, models: Rows, cpu_ranks: Rows, compute: NDArray[np.int32]) -> Floats:
        if not self._classes:
            return np.zeros(len(models))
        enough = np.add.reduce(self._big_enough.take(compute, axis=0), axis=1)
        small = np.add.reduce(self._too_small.take(compute, axis=0), axis=1)
        everything = np.add.reduce(compute, axis=1, dtype=np.int64)[:, None]
        lacks_gpu = enough < self._gpus
        lacks_cpu = cpu_ranks[:, None] < self._cpu_rank
        lost = np.where(lacks_gpu | lacks_cpu | self._cpu_only, everything, small)
        # The six cases in the published order of addition; each (state, class) belongs to exactly one.
        case = _CASES.take(lacks_gpu + 2 * lacks_cpu + self._cpu_only_bit)
        if self._some_foreign:
            foreign = ~self._model_fits.take(models, axis=0)
            case = np.where(foreign, 5, case)
            lost = np.where(foreign, everything, lost)
        share = self._weights * lost
        states, classes = share.shape
        sums = np.zeros((classes, states * 6))
        sums[np.arange(classes)[None, :], case + 6 * np.arange(states)[:, None]] = share
        # `accumulate` adds strictly one after another; `sum` would add in pairs.
        by_case = np.add.accumulate(sums, axis=0)[-1].reshape(states, 6)
        result: Floats = np.add.accumulate(by_case, axis=1)[:, -1]
        return result

    def _learn_models(self, column: LabelColumn) -> None:
        if column.epoch != self._epoch:
            # With fresh random numbers no state is taken for one of before.
            self._epoch = column.epoch
            self._model_print = self._model_print[:0]
        names = column.values
        count = len(names)
        fits = np.ones((count, len(self._classes)), np.bool_)
        for index, pod_class in enumerate(self._classes):
            allowed = pod_class.model_set
            if allowed:
                fits[:, index] = [name in allowed for name in names]
        known = len(self._model_print)
        fresh = self._model_random.integers(0, 1 << 63, count - known, np.uint64)
        self._model_print = np.concatenate([self._model_print, fresh])
        self._model_fits = fits
        self._some_foreign = not fits.all()


class FragmentationColumn:
    """F of every node, brought up to date from the change log, and its sum over the cluster."""

    def __init__(self, cluster: Cluster, fragmentation: Fragmentation) -> None:
        self._cluster = cluster
        self._fragmentation = fragmentation
        self._cursor = -1
        self.values: Floats = np.zeros(0)
        self.total = 0.0

    def refresh(self) -> None:
        changes = self._cluster.changes
        if self._cursor == changes.end:
            return
        rows = changes.since(self._cursor) if self._cursor >= 0 else None
        self._cursor = changes.end
        if rows is None or len(self.values) < self._cluster.capacity:
            self.values = np.zeros(self._cluster.capacity)
            rows = self._cluster.all_rows()
            self.values[rows] = self._fragmentation.of_rows(rows)
            self.total = float(self.values.sum())
            return
        if len(rows) <= _FEW:
            for row in rows.tolist():
                left = self._cluster.devices.free(row)
                value = self._fragmentation.of_one(row, self._cluster.free.item(row, CPU), left)
                self.total += value - self.values.item(row)
                self.values[row] = value
            return
        rows = np.unique(rows)
        fresh = self._fragmentation.of_rows(rows)
        self.total += float((fresh - self.values[rows]).sum())
        self.values[rows] = fresh
