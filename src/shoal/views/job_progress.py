"""Says how far the pods of one job are: when their work was saved, how much of a step they wait for each other, and
which of them the others wait for.

All of it comes from annotations that `shoal.train` writes, or that a program writes itself. What no pod reports is
unknown, with what would make it known: nothing is derived from the use of GPUs, because a GPU that waits in an
all-reduce is as busy as one that computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from statistics import median

import msgspec

from shoal.api.checkpoint_annotations import CHECKPOINT_ANNOTATION, CHECKPOINT_EVERY_ANNOTATION
from shoal.engine.from_api.checkpoints import saved_s, saves_every_s
from shoal.engine.pod_identity import PodIdentity
from shoal.units.durations import DurationError, nanoseconds
from shoal.units.errors import UserError, Where, excerpt

PROGRESS_ANNOTATION = "shoal.dev/progress"
STEP_TIME_ANNOTATION = "shoal.dev/step-time"
NETWORK_SHARE_ANNOTATION = "shoal.dev/network-share"
REPORTED = (
    PROGRESS_ANNOTATION,
    CHECKPOINT_ANNOTATION,
    CHECKPOINT_EVERY_ANNOTATION,
    STEP_TIME_ANNOTATION,
    NETWORK_SHARE_ANNOTATION,
)
SLOWER = 1.1
"""A pod that computes longer than the median of its job by this factor is a straggler."""
_NO_CHECKPOINT = f"no running pod has the annotation {CHECKPOINT_ANNOTATION} or {CHECKPOINT_EVERY_ANNOTATION}"
_NO_STEPS = f"fewer than two running pods report {STEP_TIME_ANNOTATION}, which shoal.train writes"
_NO_NETWORK = (
    f"no running pod reports {NETWORK_SHARE_ANNOTATION}; shoal.train writes it for a script that marks its "
    "communication by training.communicating()"
)
_EQUAL = (
    f"without {NETWORK_SHARE_ANNOTATION} a step that all ranks end together takes the same time on each of them, so "
    "that the slow one does not show"
)


class ProgressSource(msgspec.Struct, frozen=True):
    """What one running pod says."""

    pod: str
    started: str
    annotations: tuple[tuple[str, str], ...] = ()


class PodProgress(msgspec.Struct, frozen=True):
    """None where the pod does not say."""

    pod: str
    step: str = ""
    """As it was written: `1200/100000`."""
    unsaved_s: float | None = None
    """How much work would be lost if it was stopped now, of a pod that says when or how often it saves."""
    step_s: float | None = None
    network_share: float | None = None
    is_straggler: bool = False
    fault: str = ""
    """What is wrong with its annotations."""

    @property
    def own_s(self) -> float | None:
        """The time of a step without what it waited for others."""
        if self.step_s is None or self.network_share is None:
            return None
        return self.step_s * (1 - self.network_share)


class JobProgress(msgspec.Struct, frozen=True):
    """Each `no_` text says why the value is unknown."""

    pods: Sequence[PodProgress]
    unsaved_s: float | None = None
    """Of the pod that saved longest ago: a checkpoint is of use when each pod has written its part."""
    no_checkpoint: str = ""
    network_share: float | None = None
    """The mean of the pods that report it."""
    no_network: str = ""
    no_stragglers: str = ""
    """Empty where the pods could be compared, whether there are stragglers or not."""

    @property
    def stragglers(self) -> list[PodProgress]:
        return [one for one in self.pods if one.is_straggler]


def job_progress(sources: Iterable[ProgressSource], now_s: float) -> JobProgress:
    pods = [_pod(one, now_s) for one in sources]
    unsaved = [one.unsaved_s for one in pods if one.unsaved_s is not None]
    shares = [one.network_share for one in pods if one.network_share is not None]
    pods, no_stragglers = _compared(pods)
    return JobProgress(
        pods=pods,
        unsaved_s=max(unsaved, default=None),
        no_checkpoint="" if unsaved else _NO_CHECKPOINT,
        network_share=sum(shares) / len(shares) if shares else None,
        no_network="" if shares else _NO_NETWORK,
        no_stragglers=no_stragglers,
    )


def _compared(pods: list[PodProgress]) -> tuple[list[PodProgress], str]:
    """By their own time where two report it, else by the time of a step, which shows pods that do not wait for each
    other."""
    own = [one.own_s for one in pods if one.own_s is not None]
    steps = [one.step_s for one in pods if one.step_s is not None]
    if len(own) >= 2:
        return _marked(pods, own, lambda one: one.own_s), ""
    if len(steps) < 2:
        return pods, _NO_STEPS
    marked = _marked(pods, steps, lambda one: one.step_s)
    return marked, "" if any(one.is_straggler for one in marked) else _EQUAL


def _marked(
    pods: Sequence[PodProgress], known: Sequence[float], time_of: Callable[[PodProgress], float | None]
) -> list[PodProgress]:
    usual = median(known)

    def is_slow(one: PodProgress) -> bool:
        seconds = time_of(one)
        return seconds is not None and seconds > SLOWER * usual

    return [msgspec.structs.replace(one, is_straggler=is_slow(one)) for one in pods]


def _pod(source: ProgressSource, now_s: float) -> PodProgress:
    said = dict(source.annotations)
    where = Where(obj=f"pod {source.pod}", path="metadata.annotations")
    try:
        return PodProgress(
            pod=source.pod,
            step=said.get(PROGRESS_ANNOTATION, ""),
            unsaved_s=_unsaved_s(said, source.started, now_s, where),
            step_s=_step_s(said, where),
            network_share=_share(said, where),
        )
    except UserError as error:
        return PodProgress(source.pod, said.get(PROGRESS_ANNOTATION, ""), fault=str(error))


def _unsaved_s(said: dict[str, str], started: str, now_s: float, where: Where) -> float | None:
    saved, every = saved_s(said, where), saves_every_s(said, where)
    if saved is None and not every:
        return None
    try:
        since_s = datetime.fromisoformat(started).timestamp()
    except ValueError:
        if saved is None:
            return None
        since_s = saved
    return PodIdentity(since_s=since_s, saved_s=saved, saves_every_s=every).lost_s(now_s)


def _step_s(said: dict[str, str], where: Where) -> float | None:
    text = said.get(STEP_TIME_ANNOTATION)
    if text is None:
        return None
    try:
        seconds = nanoseconds(text) / 10**9
    except DurationError:
        seconds = 0.0
    if seconds <= 0:
        here = where.key(STEP_TIME_ANNOTATION)
        raise UserError(f"{excerpt(text)} is not a time span", where=here, fix="write e.g. 850ms or 1.5s")
    return seconds


def _share(said: dict[str, str], where: Where) -> float | None:
    text = said.get(NETWORK_SHARE_ANNOTATION)
    if text is None:
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    # A value that is no number is not between them either.
    if not 0 <= share <= 1:
        here = where.key(NETWORK_SHARE_ANNOTATION)
        raise UserError(f"{excerpt(text)} is not a share", where=here, fix="write a number from 0 to 1")
    return share
