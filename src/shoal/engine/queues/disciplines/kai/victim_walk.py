"""Finds, along the line of victims, the nodes on which a claimant's pod may fit once those before have left.

Which node has enough is counted over columns, for all steps looked at so far at once. So a claimant that needs whole
nodes does not pay for each of the thousands of steps before the first node is empty. Counting only saves trials: a
node whose devices do not add up is always worth one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.engine.charges import Charge
from shoal.engine.device_demand import COMPUTE
from shoal.engine.facts import GPU_BEST, GPU_MILLI, GPU_WHOLE, NEVER_LACKING
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareCycle
from shoal.engine.queues.disciplines.kai.fair_jobs import FairJob
from shoal.engine.queues.disciplines.kai.victim_line import VictimStep

Amounts = NDArray[np.int64]


class VictimWalk:
    """The steps that yield to one claimant, as far as they were looked at."""

    def __init__(self, cycle: FairshareCycle, steps: Iterable[VictimStep]) -> None:
        self._cycle = cycle
        self._more = iter(steps)
        self._steps: list[VictimStep] = []
        self._is_spent: list[bool] = []
        self._place_of: dict[VictimStep, int] = {}
        self._of_job: dict[FairJob, list[int]] = {}
        self._on_row: dict[int, list[int]] = {}
        self._pair_rows: list[int] = []
        self._pair_steps: list[int] = []
        self._pair_freed: list[Amounts] = []
        self._pairs: _Pairs | None = None
        self._unclear: set[int] = set(cycle.cluster.devices.odd)

    def __len__(self) -> int:
        return len(self._steps)

    def spent(self, steps: Iterable[VictimStep]) -> None:
        """These have yielded."""
        for step in steps:
            if (at := self._place_of.get(step)) is not None:
                self._is_spent[at] = True

    def left(self, jobs: Iterable[FairJob]) -> None:
        """All that these jobs could give up has yielded, to this claimant or to another."""
        for job in jobs:
            for at in self._of_job.get(job, ()):
                self._is_spent[at] = True

    def revive(self, steps: Iterable[VictimStep]) -> None:
        """These have not, after all."""
        for step in steps:
            self._is_spent[self._place_of[step]] = False

    def chances(self, charges: Iterable[Charge] | None) -> Iterator[list[VictimStep]]:
        """Those that would have to leave some node, for each node and step after which one of the asks may fit there.

        Without asks each node is tried after each step of which something leaves it."""
        first, has_more = 0, self._look(1)
        while True:
            for at, row in self._worth_trying(first, charges):
                yield [self._steps[other] for other in self._on_row[row] if other <= at and not self._is_spent[other]]
            first = len(self._steps)
            if not has_more:
                return
            # Twice as many each time: what is counted is counted again as seldom as possible.
            has_more = self._look(2 * first)

    def _look(self, count: int) -> bool:
        while len(self._steps) < count:
            step = next(self._more, None)
            if step is None:
                return False
            self._add(step)
        return True

    def _add(self, step: VictimStep) -> None:
        at = len(self._steps)
        self._steps.append(step)
        self._place_of[step] = at
        self._of_job.setdefault(step.job, []).append(at)
        self._is_spent.append(False)
        freed: dict[int, Amounts] = {}
        for pod in step.pods:
            allocation = self._cycle.cluster.pods[pod]
            row, taken, grant = allocation.row, allocation.charge.taken, allocation.grant
            freed[row] = freed[row] + taken if row in freed else taken
            if grant is not None and any(plane != COMPUTE for _, plane, _ in grant.parts):
                self._unclear.add(row)
        for row, amounts in freed.items():
            self._on_row.setdefault(row, []).append(at)
            self._pair_rows.append(row)
            self._pair_steps.append(at)
            self._pair_freed.append(amounts)

    def _worth_trying(self, first: int, charges: Iterable[Charge] | None) -> list[tuple[int, int]]:
        """(step, node), in the order of steps, from a step on."""
        if not self._pair_rows:
            return []
        pairs = self._pairs
        if pairs is None or len(pairs.rows) < len(self._pair_rows):
            pairs = self._pairs = _Pairs.of(self._pair_rows, self._pair_steps, self._pair_freed)
        alive = ~np.array(self._is_spent)[pairs.steps]
        worth = alive & (pairs.steps >= first)
        if charges is not None and worth.any():
            worth &= self._has_room(pairs, alive, charges)
        found = np.flatnonzero(worth)
        found = found[np.argsort(pairs.steps[found], kind="stable")]
        return list(zip(pairs.steps[found].tolist(), pairs.rows[found].tolist(), strict=True))

    def _has_room(self, pairs: _Pairs, alive: NDArray[np.bool_], charges: Iterable[Charge]) -> NDArray[np.bool_]:
        """Whether the node of each pair would have enough, counting all pairs of that node up to it."""
        cluster = self._cycle.cluster
        total = np.cumsum(pairs.freed * alive[:, None], axis=0)
        before = np.zeros((len(pairs.starts), total.shape[1]), np.int64)
        before[1:] = total[pairs.starts[1:] - 1]
        free = cluster.free[pairs.rows] + total - before[pairs.group]
        has_room = np.isin(pairs.rows, list(self._unclear)) if self._unclear else np.zeros(len(alive), np.bool_)
        for charge in charges:
            has_room |= (free >= _need(charge, cluster.width)).all(axis=1)
        return has_room


@dataclass(frozen=True, slots=True)
class _Pairs:
    """What each step frees on each node, node by node and in the order of steps."""

    rows: NDArray[np.int64]
    steps: NDArray[np.int64]
    freed: Amounts
    starts: NDArray[np.int64]
    """Where a node begins."""
    group: NDArray[np.int64]
    """Pair -> the number of its node among the starts."""

    @classmethod
    def of(cls, rows: list[int], steps: list[int], freed: list[Amounts]) -> _Pairs:
        found = np.array(rows, np.int64)
        order = np.argsort(found, kind="stable")
        found = found[order]
        begins = np.diff(found, prepend=-1) != 0
        return cls(
            found,
            np.array(steps, np.int64)[order],
            np.stack(freed)[order],
            np.flatnonzero(begins),
            np.cumsum(begins) - 1,
        )


def _need(charge: Charge, width: int) -> Amounts:
    need = np.full(width, NEVER_LACKING, np.int64)
    need[: len(charge.need)] = charge.need
    # How much of a device is free in one piece does not add up; the sum over a node's devices does.
    need[[GPU_WHOLE, GPU_BEST]] = NEVER_LACKING
    need[GPU_MILLI] = charge.taken[GPU_MILLI] or NEVER_LACKING
    return need
