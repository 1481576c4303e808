"""Who a pod is: its company, its turn, and whether it yields, from everything that is written on it.

Yielding follows the ecosystem that the pod shows it belongs to. Volcano's `preemptable` is taken at its word. KAI holds
that work of priority 100 and more is not preemptible unless it says otherwise; that rule is applied to pods with KAI's
queue or group on them and to nobody else, because a priority of 1000 means nothing of the kind elsewhere. What belongs
to the system never yields.

Only a pod that somebody makes anew can be moved: one with a controller, or of a gang. A pod written by hand would be
gone for good.
"""

from __future__ import annotations

from datetime import datetime

from shoal.api.groups.kai import GROUP_ANNOTATION as KAI_GROUP_ANNOTATION
from shoal.api.groups.kai import QUEUE_LABEL, SUB_GROUP_LABEL
from shoal.api.pod import Pod
from shoal.engine.from_api.membership import group_of
from shoal.engine.from_api.priorities import SYSTEM_PRIORITY, Rank
from shoal.engine.who import Traits, Who
from shoal.units.errors import UserError, Where, excerpt

CHECKPOINT_ANNOTATION = "shoal.dev/last-checkpoint"
"""When the pod's work was last saved, as RFC 3339: what is lost if it is stopped is counted from there."""

ROLE_KEY = "volcano.sh/task-spec"
VOLCANO_QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
PREEMPTABLE_KEY = "volcano.sh/preemptable"
PREEMPTIBILITY_LABEL = "kai.scheduler/preemptibility"

FIRST_KAI_LASTING = 100
"""KAI's priority from which work is not preemptible."""

_WORDS = {"true": True, "false": False}
_KAI_WORDS = {"preemptible": True, "nonpreemptible": False, "semipreemptible": True}


def who_of_pod(pod: Pod, rank: Rank, *, order: int = 0) -> Who:
    """The pod's standing. `order` is its place among the pods of its gang."""
    meta = pod.metadata
    where = Where(obj=f"Pod {meta.key}")
    labels = meta.labels
    group = group_of(pod, where)
    return Who(
        traits=Traits.of(meta.namespace, labels),
        group=group,
        part=labels.get(SUB_GROUP_LABEL, ""),
        role=meta.annotations.get(ROLE_KEY) or labels.get(ROLE_KEY, ""),
        queue=labels.get(QUEUE_LABEL) or volcano_queue(meta.annotations.get(VOLCANO_QUEUE_ANNOTATION, "")),
        preempts=rank.preempts,
        yields=_yields(pod, rank.value, where),
        returns=bool(group) or any(owner.controller for owner in meta.owner_references),
        since_s=_seconds(pod.status.start_time) or 0.0,
        saved_s=_saved(pod, where),
        order=order,
    )


def volcano_queue(name: str) -> str:
    """Who names no queue is in Volcano's "default"; so is everybody else."""
    return "" if name == "default" else name


def _yields(pod: Pod, priority: int, where: Where) -> bool:
    if priority >= SYSTEM_PRIORITY:
        return False
    meta = pod.metadata
    said = [
        _said(text, words, where.with_path(f"metadata.{field}[{key}]"))
        for field, key, words, there in (
            ("annotations", PREEMPTABLE_KEY, _WORDS, meta.annotations),
            ("labels", PREEMPTABLE_KEY, _WORDS, meta.labels),
            ("labels", PREEMPTIBILITY_LABEL, _KAI_WORDS, meta.labels),
        )
        if (text := there.get(key)) is not None
    ]
    if said:
        if len(set(said)) > 1:
            path = "metadata.annotations" if PREEMPTABLE_KEY in meta.annotations else "metadata.labels"
            raise UserError(
                f"{PREEMPTABLE_KEY} and {PREEMPTIBILITY_LABEL} contradict each other",
                where=where.with_path(path),
                fix="keep one of them",
            )
        return said[0]
    if QUEUE_LABEL in meta.labels or KAI_GROUP_ANNOTATION in meta.annotations:
        return priority < FIRST_KAI_LASTING
    return True


def _said(text: str, words: dict[str, bool], where: Where) -> bool:
    word = words.get(text.lower().replace("-", ""))
    if word is None:
        spelled = "true or false" if words is _WORDS else "preemptible or non-preemptible"
        raise UserError(f"expected {spelled}, got {excerpt(text)}", where=where)
    return word


def _saved(pod: Pod, where: Where) -> float | None:
    text = pod.metadata.annotations.get(CHECKPOINT_ANNOTATION)
    if text is None:
        return None
    here = where.with_path(f"metadata.annotations[{CHECKPOINT_ANNOTATION}]")
    try:
        saved = datetime.fromisoformat(text)
    except ValueError as error:
        raise UserError(f"{excerpt(text)} is not a time", where=here, fix="write e.g. 2026-01-31T12:00:00Z") from error
    if saved.tzinfo is None:
        raise UserError(f"{excerpt(text)} has no time zone", where=here, fix="end it with Z or an offset")
    return saved.timestamp()


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
