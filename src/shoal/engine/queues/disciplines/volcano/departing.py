"""Promises capacity that terminating pods will free, to single pods and to gangs."""

from __future__ import annotations

from functools import partial

import numpy as np

from shoal.engine.gang_members import Gang
from shoal.engine.gangs.attempt import place_gang
from shoal.engine.queues.disciplines.volcano.jobs import PodOfJob
from shoal.engine.queues.disciplines.volcano.session import Session
from shoal.engine.reasons import Code
from shoal.engine.steps.departures import Departures


class DepartingCapacity:
    """The pods that terminate when an action begins."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._departures = Departures(session.cluster)
        self._has_any = bool(session.cluster.terminating)

    def promise(self, pod: PodOfJob) -> bool:
        """Nominate the pod for the best node that holds it once the terminating pods have left."""
        if not self._has_any:
            return False
        session = self._session
        rows = self._departures.hopeful(pod.charge)
        allowed = session.rows_for(pod)
        if allowed is not None:
            rows = np.intersect1d(rows, allowed)
        attempt = partial(session.state.fitter.pod, pod.key, rows)
        if not len(rows) or not session.state.nomination(attempt, self._departures.on(rows)):
            return False
        session.note_pipelined(pod)
        return True

    def promise_gang(self, gang: Gang, pods: dict[str, PodOfJob]) -> bool:
        """Nominate what the gang lacks for nodes that hold it once the terminating pods have left."""
        if not self._has_any:
            return False
        session = self._session
        mark = session.state.ledger.mark()

        def attempt() -> bool:
            return place_gang(session.state.fitter, gang) is Code.PLACED

        if not session.state.nomination(attempt, self._departures.all_pods()):
            return False
        for key in session.state.ledger.placed_since(mark):
            session.note_pipelined(pods[key])
        return True
