"""Finds, along the line of victims, the nodes on which a claimant's pod may fit once those before have left.

Which node has enough is counted over columns, for all steps looked at so far at once. So a claimant that needs whole
nodes does not pay for each of the thousands of steps before the first node is empty. Counting only saves trials: a
node whose devices do not add up is always worth one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from shoal.engine.charges import Charge
from shoal.engine.device_demand import COMPUTE
from shoal.engine.facts import GPU_BEST, GPU_MILLI, GPU_WHOLE, NEVER_LACKING
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareCycle
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
        self._on_row: dict[int, list[int]] = {}
        self._pair_rows: list[int] = []
        self._pair_steps: list[int] = []
        self._pair_freed: list[Amounts] = []
        self._unclear: set[int] = set(cycle.cluster.devices.odd)

    def __len__(self) -> int:
        return len(self._steps)

    def spent(self, steps: Iterable[VictimStep]) -> None:
        """These have yielded."""
        for step in steps:
            if (at := self._place_of.get(step)) is not None:
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
        rows = np.array(self._pair_rows, np.int64)
        steps = np.array(self._pair_steps, np.int64)
        alive = ~np.array(self._is_spent)[steps]
        worth = alive & (steps >= first)
        if charges is not None and worth.any():
            worth &= self._has_room(rows, alive, charges)
        return list(zip(steps[worth].tolist(), rows[worth].tolist(), strict=True))

    def _has_room(
        self, rows: NDArray[np.int64], alive: NDArray[np.bool_], charges: Iterable[Charge]
    ) -> NDArray[np.bool_]:
        """Whether the node of each pair would have enough, counting all pairs of that node up to it."""
        cluster = self._cycle.cluster
        order = np.argsort(rows, kind="stable")
        freed = np.stack(self._pair_freed)[order] * alive[order, None]
        total = np.cumsum(freed, axis=0)
        sorted_rows = rows[order]
        starts = np.flatnonzero(np.diff(sorted_rows, prepend=-1))
        before = np.zeros_like(total)
        before[starts] = total[starts] - freed[starts]
        group = np.repeat(starts, np.diff(np.append(starts, len(sorted_rows))))
        free = cluster.free[sorted_rows] + total - before[group]
        has_room = np.isin(sorted_rows, list(self._unclear)) if self._unclear else np.zeros(len(rows), np.bool_)
        for charge in charges:
            has_room |= (free >= _need(charge, cluster.width)).all(axis=1)
        found = np.empty(len(rows), np.bool_)
        found[order] = has_room
        return found


def _need(charge: Charge, width: int) -> Amounts:
    need = np.full(width, NEVER_LACKING, np.int64)
    need[: len(charge.need)] = charge.need
    # How much of a device is free in one piece does not add up; the sum over a node's devices does.
    need[[GPU_WHOLE, GPU_BEST]] = NEVER_LACKING
    need[GPU_MILLI] = charge.taken[GPU_MILLI] or NEVER_LACKING
    return need
