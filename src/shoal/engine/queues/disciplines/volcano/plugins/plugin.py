"""Defines what a plugin of Volcano may say in a session; each plugin redefines the hooks that it names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.engine.queues.disciplines.volcano.amounts import Figures
from shoal.engine.queues.disciplines.volcano.configuration import PluginOption
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.plugins.session_view import SessionView

Rank = float | tuple[float, ...]
RowMask = NDArray[np.bool_]


class Plugin:
    """A plugin without an opinion."""

    defines: ClassVar[frozenset[str]] = frozenset()
    """The hooks that it implements."""
    compares_relatives = False
    """Whether victims of queues near to the claimant's come first."""

    def __init__(self, session: SessionView, option: PluginOption) -> None:
        self.session = session
        self.name = option.name
        self.arguments = option.arguments
        self.hooks = option.hooks

    def job_order(self, _job: JobState, /) -> Rank:
        """The lower, the earlier."""
        return 0.0

    def task_order(self, _pod: PodOfJob, /) -> Rank:
        return 0.0

    def queue_order(self, _queue: str, /) -> Rank:
        return 0.0

    def is_job_ready(self, _job: JobState, /) -> bool:
        return True

    def is_job_pipelined(self, _job: JobState, /) -> bool:
        return True

    def is_job_starving(self, _job: JobState, /) -> bool:
        return True

    def invalid(self, _job: JobState, /) -> str:
        """Why no action looks at the job. This has no switch."""
        return ""

    def is_overused(self, _queue: str, /) -> bool:
        """Whether allocate and reclaim skip the queue."""
        return False

    def is_allocatable(self, _queue: str, _amounts: Figures, /) -> bool:
        """Whether the queue may use that much more."""
        return True

    def may_reclaim(self, _queue: str, _amounts: Figures, /) -> bool:
        """Whether a pod of the queue that asks for that much may take it from other queues."""
        return True

    def vote(self, _job: JobState, /) -> str | None:
        """Whether the job is admitted: empty permits, words refuse, None abstains."""
        return None

    def preemptable(self, _claimant: PodOfJob, candidates: Sequence[PodOfJob], /) -> list[PodOfJob]:
        """Those of the candidates that may be preempted for the claimant, of the same queue."""
        return list(candidates)

    def reclaimable(self, _claimant: PodOfJob, candidates: Sequence[PodOfJob], /) -> list[PodOfJob]:
        """Those of the candidates that may be reclaimed for the claimant, of other queues."""
        return list(candidates)

    def rows(self, _pod: PodOfJob, /) -> RowMask | None:
        """The rows of nodes on which the pod may run; None for all."""
        return None

    def changes_s(self) -> float:
        """When a decision of the plugin may change without an event."""
        return float("inf")

    def may_lose(self, _queue: str, /) -> bool:
        """Whether any pod of the queue could be reclaimed now: a quick answer, False only where none could."""
        return True

    def to_shuffle(self) -> list[PodOfJob]:
        """Pods that are to be evicted for no other pod."""
        return []
