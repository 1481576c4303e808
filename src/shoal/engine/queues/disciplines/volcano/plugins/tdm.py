"""Lends nodes of revocable zones to preemptible pods within a daily window (UTC), and takes them back at its end.

Nodes name their zone in a label. Outside the window no pod goes there, and the shuffle action evicts the preemptible
pods that are there, one per job and period.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.queues.disciplines.volcano.configuration import PluginOption
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.plugins.arguments import duration_s, window_minutes
from shoal.engine.queues.disciplines.volcano.plugins.plugin import Plugin, Rank, RowMask
from shoal.engine.queues.disciplines.volcano.plugins.session_view import SessionView

ZONE_LABEL = "volcano.sh/revocable-zone"
_ZONE = "tdm.revocable-zone."
_PERIOD = "tdm.evict.period"
_PERIOD_S = 60.0
_DAY_S = 86_400
_MINUTE_S = 60
_LAST = "tdm"


class Tdm(Plugin):
    defines = frozenset({"JobOrder", "Predicate", "Victim"})

    def __init__(self, session: SessionView, option: PluginOption) -> None:
        super().__init__(session, option)
        windows = {
            name.removeprefix(_ZONE): window
            for name, text in option.arguments.items()
            if name.startswith(_ZONE) and (window := window_minutes(text)) is not None
        }
        minute = session.now_s % _DAY_S / 60
        is_open = {zone: _is_inside(minute, *window) for zone, window in windows.items()}
        cluster = session.cluster
        zones = [cluster.labels.of(row).get(ZONE_LABEL, "") for row in range(cluster.rows)]
        self._revocable = np.array([zone in is_open for zone in zones], np.bool_)
        self._closed = np.array([zone in is_open and not is_open[zone] for zone in zones], np.bool_)

    def job_order(self, job: JobState) -> Rank:
        """Jobs that may not be preempted come first."""
        return float(job.gang.facts is None or job.gang.facts.is_preemptible)

    def rows(self, pod: PodOfJob) -> RowMask | None:
        if not self._revocable.any():
            return None
        return ~self._closed if pod.yields else ~self._revocable

    def changes_s(self) -> float:
        """Windows begin and end with a minute."""
        now_s = self.session.now_s
        return now_s + _MINUTE_S - now_s % _MINUTE_S

    def to_shuffle(self) -> list[PodOfJob]:
        session, now_s = self.session, self.session.now_s
        period_s = duration_s(self.arguments.get(_PERIOD)) or _PERIOD_S
        if not self._closed.any() or now_s < session.memory.get(_LAST, -period_s) + period_s:
            return []
        session.memory[_LAST] = now_s
        found: list[PodOfJob] = []
        for job in session.jobs.values():
            there = [
                pod
                for pod in job.ready.values()
                if pod.is_preemptible and self._closed[session.cluster.pods[pod.key].row]
            ]
            found += sorted(there, key=session.task_key)[-1:]
        return found


def _is_inside(minute: float, begin: int, end: int) -> bool:
    """A window may go past midnight."""
    return begin <= minute < end if begin <= end else minute >= begin or minute < end
