"""Promises capacity that terminating pods will free, to single pods and to gangs."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from shoal.engine.charges import Charge
from shoal.engine.facts import GPU_BEST, GPU_MILLI, GPU_WHOLE, NEVER_LACKING
from shoal.engine.gang_members import Gang
from shoal.engine.gangs.attempt import place_gang
from shoal.engine.queues.disciplines.volcano.jobs import PodOfJob
from shoal.engine.queues.disciplines.volcano.session import Session
from shoal.engine.reasons import Code

Rows = NDArray[np.int64]


class DepartingCapacity:
    """The pods that terminate when an action begins, by node."""

    def __init__(self, session: Session) -> None:
        self._session = session
        cluster = session.cluster
        self._by_row: dict[int, list[str]] = {}
        for pod in cluster.terminating:
            self._by_row.setdefault(cluster.pods[pod].row, []).append(pod)
        self._rows = np.array(sorted(self._by_row), np.int64)
        self._left: NDArray[np.int64] | None = None

    def promise(self, pod: PodOfJob) -> bool:
        """Nominate the pod for the best node that holds it once the terminating pods have left."""
        if not self._by_row:
            return False
        session = self._session
        rows = self._hopeful(pod.charge)
        allowed = session.rows_for(pod)
        if allowed is not None:
            rows = np.intersect1d(rows, allowed)
        gone = [each for row in rows.tolist() for each in self._by_row[row]]
        if not gone or not session.state.nomination(partial(session.state.fitter.pod, pod.key, rows), gone):
            return False
        session.note_pipelined(pod)
        return True

    def promise_gang(self, gang: Gang, pods: dict[str, PodOfJob]) -> bool:
        if not self._by_row:
            return False
        session = self._session
        gone = [each for on_row in self._by_row.values() for each in on_row]
        mark = session.state.ledger.mark()
        if not session.state.nomination(lambda: place_gang(session.state.fitter, gang) is Code.PLACED, gone):
            return False
        for key in session.state.ledger.placed_since(mark):
            session.note_pipelined(pods[key])
        return True

    def _hopeful(self, charge: Charge) -> Rows:
        """Nodes with terminating pods on which the pod may fit afterwards, by the count."""
        cluster, rows = self._session.cluster, self._rows
        if self._left is None or self._left.shape[1] != cluster.width:
            self._left = np.zeros((len(rows), cluster.width), np.int64)
            for line, row in enumerate(rows.tolist()):
                for pod in self._by_row[row]:
                    self._left[line] += cluster.pods[pod].charge.taken
        need = np.full(cluster.width, NEVER_LACKING, np.int64)
        need[: len(charge.need)] = charge.need
        # How much of a device is free in one piece does not add up; the sum over a node's devices does.
        need[[GPU_WHOLE, GPU_BEST]] = NEVER_LACKING
        need[GPU_MILLI] = charge.gpu_milli or NEVER_LACKING
        may_fit = (cluster.free[rows] + self._left >= need).all(axis=1)
        if cluster.devices.odd:
            may_fit |= np.isin(rows, list(cluster.devices.odd))
        return rows[may_fit]
