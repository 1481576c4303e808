"""Determines the identity of a pod: its gang, its place in the order, and whether it may be preempted.

Yielding follows the ecosystem that the pod shows it belongs to. Shoal's own `preemptible` and Volcano's `preemptable`
are taken at their word. KAI holds that work of priority 100 and more is not preemptible unless it says otherwise; that
rule is applied only to pods with KAI's queue or group, because a priority of 1000 means nothing
of the kind elsewhere. What belongs to the system never yields. Nor do pods of a Kueue Workload: the
admission discipline evicts them, all together with their job, so their capacity must not be assigned
to other pods.

Only a pod that is created again can be moved: one with a controller, or of a gang. A pod written by hand would be
gone for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import structs

from shoal.api.checkpoint_annotations import CHECKPOINT_ANNOTATION, CHECKPOINT_EVERY_ANNOTATION
from shoal.api.groups.kai import GROUP_ANNOTATION as KAI_GROUP_ANNOTATION
from shoal.api.groups.kai import QUEUE_LABEL, SUB_GROUP_LABEL
from shoal.api.pod import Pod
from shoal.engine.from_api.checkpoints import saved_s, saves_every_s
from shoal.engine.from_api.membership import IN_ANNOTATIONS, IN_LABELS, ONE_BY_ONE, group_of
from shoal.engine.from_api.priorities import SYSTEM_PRIORITY, Rank
from shoal.engine.pod_identity import PodIdentity, PodLabels
from shoal.engine.queues.disciplines.kai.objects import FIRST_NON_PREEMPTIBLE_PRIORITY
from shoal.engine.queues.disciplines.volcano.objects import QUEUE_ANNOTATION as VOLCANO_QUEUE_ANNOTATION
from shoal.units.errors import UserError, Where, excerpt

ROLE_KEY = "volcano.sh/task-spec"
PREEMPTABLE_KEY = "volcano.sh/preemptable"
PREEMPTIBILITY_LABEL = "kai.scheduler/preemptibility"
PREEMPTIBLE_ANNOTATION = "shoal.dev/preemptible"
KUEUE_WORKLOAD_ANNOTATION = "kueue.x-k8s.io/workload"

StringMap = Mapping[str, str]
IdentityFields = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
"""Labels and annotations."""

_BOOLEANS = {"true": True, "false": False}
_PREEMPTIBILITY_KEYS = frozenset(
    {PREEMPTIBLE_ANNOTATION, PREEMPTABLE_KEY, PREEMPTIBILITY_LABEL, QUEUE_LABEL, KAI_GROUP_ANNOTATION}
)
_KAI_VALUES = {"preemptible": True, "nonpreemptible": False, "semipreemptible": True}


_LABELS = IN_LABELS | {SUB_GROUP_LABEL, ROLE_KEY, QUEUE_LABEL, PREEMPTABLE_KEY, PREEMPTIBILITY_LABEL}
_ANNOTATIONS = IN_ANNOTATIONS | {
    *ONE_BY_ONE,
    ROLE_KEY,
    VOLCANO_QUEUE_ANNOTATION,
    KUEUE_WORKLOAD_ANNOTATION,
    PREEMPTIBLE_ANNOTATION,
    PREEMPTABLE_KEY,
    KAI_GROUP_ANNOTATION,
    CHECKPOINT_ANNOTATION,
    CHECKPOINT_EVERY_ANNOTATION,
}
_NO_FIELDS: IdentityFields = ((), ())


def identity_metadata(labels: StringMap, annotations: StringMap) -> IdentityFields:
    """Of what is written on a pod, all that its standing is read from, but for what other pods see of it."""
    if _LABELS.isdisjoint(labels) and _ANNOTATIONS.isdisjoint(annotations):
        # Most pods, and there are many.
        return _NO_FIELDS
    return _selected(labels, _LABELS), _selected(annotations, _ANNOTATIONS)


def _selected(words: StringMap, wanted: frozenset[str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, text) for name, text in words.items() if name in wanted))


def who_of_pod(pod: Pod, rank: Rank, *, order: int = 0) -> PodIdentity:
    """The pod's standing. `order` is its place among the pods of its gang."""
    meta = pod.metadata
    # Nothing else is shown to what reads it, so that two with equal words have equal standings.
    labels, annotations = map(dict, identity_metadata(meta.labels, meta.annotations))
    reported = structs.replace(pod, metadata=structs.replace(meta, labels=labels, annotations=annotations))
    return structs.replace(_identity(reported, rank), traits=PodLabels.of(meta.namespace, meta.labels), order=order)


def _identity(pod: Pod, rank: Rank) -> PodIdentity:
    meta = pod.metadata
    where = Where(obj=f"Pod {meta.key}")
    notes = where.with_path("metadata.annotations")
    labels = meta.labels
    group = group_of(pod, where)
    return PodIdentity(
        group=group,
        part=labels.get(SUB_GROUP_LABEL, ""),
        role=meta.annotations.get(ROLE_KEY) or labels.get(ROLE_KEY, ""),
        queue=labels.get(QUEUE_LABEL) or volcano_queue(meta.annotations.get(VOLCANO_QUEUE_ANNOTATION, "")),
        preempts=rank.preempts,
        is_preemptible=_is_preemptible(pod, rank.value, where),
        returns=bool(group) or any(owner.controller for owner in meta.owner_references),
        since_s=_seconds(pod.status.start_time) or 0.0,
        saved_s=saved_s(meta.annotations, notes),
        saves_every_s=saves_every_s(meta.annotations, notes),
    )


def volcano_queue(name: str) -> str:
    """A pod without a queue is in Volcano's queue "default"."""
    return "" if name == "default" else name


def _is_preemptible(pod: Pod, priority: int, where: Where) -> bool:
    meta = pod.metadata
    if priority >= SYSTEM_PRIORITY or KUEUE_WORKLOAD_ANNOTATION in meta.annotations:
        return False
    if _PREEMPTIBILITY_KEYS.isdisjoint(meta.labels) and _PREEMPTIBILITY_KEYS.isdisjoint(meta.annotations):
        # Most pods have none of these keys, and there are many pods.
        return True
    flags = [
        (key, field, _parse_flag(text, meanings, where.with_path(f"metadata.{field}[{key}]")))
        for field, key, meanings, there in (
            ("annotations", PREEMPTIBLE_ANNOTATION, _BOOLEANS, meta.annotations),
            ("annotations", PREEMPTABLE_KEY, _BOOLEANS, meta.annotations),
            ("labels", PREEMPTABLE_KEY, _BOOLEANS, meta.labels),
            ("labels", PREEMPTIBILITY_LABEL, _KAI_VALUES, meta.labels),
        )
        if (text := there.get(key)) is not None
    ]
    if flags:
        first, field, is_preemptible = flags[0]
        other = next((key for key, _, flag in flags if flag != is_preemptible), "")
        if other:
            raise UserError(
                f"{first} and {other} contradict each other",
                where=where.with_path(f"metadata.{field}"),
                fix="keep one of them",
            )
        return is_preemptible
    if QUEUE_LABEL in meta.labels or KAI_GROUP_ANNOTATION in meta.annotations:
        return priority < FIRST_NON_PREEMPTIBLE_PRIORITY
    return True


def _parse_flag(text: str, meanings: dict[str, bool], where: Where) -> bool:
    flag = meanings.get(text.lower().replace("-", ""))
    if flag is None:
        spelled = "true or false" if meanings is _BOOLEANS else "preemptible or non-preemptible"
        raise UserError(f"expected {spelled}, got {excerpt(text)}", where=where)
    return flag


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
