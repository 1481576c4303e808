"""Decides which pods of a set of manifests Volcano's queues hold back, by the discipline of the scheduling loop, and
explains each with amounts: not admitted, or admitted and without quota for what they lack (`volcano_shares`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from shoal.api.decode import Document, Unknown
from shoal.api.groups.volcano import GROUP_ANNOTATION, VolcanoPodGroup
from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod
from shoal.api.wire import dec_hook
from shoal.engine.events import Event
from shoal.engine.queues.disciplines.volcano.amounts import requests_of
from shoal.engine.queues.disciplines.volcano.group_phases import GroupRefusal
from shoal.engine.queues.disciplines.volcano.known_jobs import KnownJobs
from shoal.engine.queues.disciplines.volcano.objects import (
    SCHEDULER,
    GroupPod,
    GroupPodSpec,
    GroupStatus,
    Queue,
    QueuedPodGroup,
    VolcanoCondition,
    VolcanoMeta,
    VolcanoPodStatus,
)
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree, Usage
from shoal.sim.volcano_changes import (
    SizedGroupPod,
    held_by_capability,
    held_by_share,
    held_without_queue,
    requested_by,
)
from shoal.sim.volcano_rounds import Decided, decided
from shoal.sim.volcano_settings import volcano_settings
from shoal.sim.volcano_shares import SHARE_HELP, beyond_the_nodes, promised_usage_of, refusals_of, usage_of
from shoal.store.held_pods import HeldPod

_GROUP = "scheduling.volcano.sh/"


def is_queue(document: Document) -> bool:
    value = document.value
    return isinstance(value, Unknown) and value.kind == "Queue" and value.api_version.startswith(_GROUP)


def volcano_tree(documents: Iterable[Document]) -> QueueTree | None:
    """The tree of Volcano's queues; None if there are none."""
    queues = [queue for document in documents if is_queue(document) and (queue := _queue(document)) is not None]
    return QueueTree(queues) if queues else None


def volcano_groups(documents: Iterable[Document]) -> dict[str, QueuedPodGroup]:
    found = (each.value for each in documents if isinstance(each.value, VolcanoPodGroup))
    return {group.metadata.key: _group(group) for group in found}


def volcano_pods(documents: Iterable[Document]) -> Iterator[GroupPod]:
    """The running pods of Volcano's scheduler without a group: they count in their queues."""
    for document in documents:
        pod = document.value
        if isinstance(pod, Pod) and pod.spec.scheduler_name == SCHEDULER and pod.spec.node_name:
            yield _pod(pod)


def held_by_volcano(
    documents: Sequence[Document], waiting: Iterable[Pod], events: Sequence[Event]
) -> dict[str, HeldPod]:
    """The reason by held pod, or by group if it has no pods yet. `waiting`: existing and future pods to place."""
    tree = volcano_tree(documents)
    if tree is None:
        return {}
    groups = volcano_groups(documents)
    bound = (each.value for each in documents if isinstance(each.value, Pod) and each.value.spec.node_name)
    members: dict[str, list[SizedGroupPod]] = {}
    for pod in (*bound, *waiting):
        of = f"{pod.metadata.namespace}/{pod.metadata.annotations.get(GROUP_ANNOTATION, '')}"
        if of in groups:
            members.setdefault(of, []).append(_pod(pod))
    known = KnownJobs(tree.queues.values(), groups.values(), volcano_pods(documents))
    world = decided(known, events, volcano_settings(documents))
    used, promised = usage_of(world.session), promised_usage_of(world.session)
    found: dict[str, HeldPod] = {}
    for name, refusal in refusals_of(world, tree, groups).items():
        left = _left(world, name, members.get(name, ()))
        requested = requested_by(*_parts(groups[name], members, left))
        counted = used if world.known.is_admitted(name) else promised
        kept = _reason(tree, groups[name], refusal, requested, counted)
        if refusal.is_quota and (short := beyond_the_nodes(requested, world.session)):
            kept = replace(kept, help=short)
        found |= {_key(pod): kept for pod in left}
        if not members.get(name):
            found[name] = kept
    return found


def _left(world: Decided, name: str, members: Sequence[SizedGroupPod]) -> list[SizedGroupPod]:
    """The pods of a group that are held: all that have no node, or those that an admitted group has not started."""
    unplaced = [pod for pod in members if not pod.spec.node_name and not pod.is_finished]
    if not world.known.is_admitted(name):
        return unplaced
    job = world.session.jobs.get(name)
    return [pod for pod in unplaced if job is not None and _key(pod) in job.pending]


def _parts(
    group: QueuedPodGroup, members: Mapping[str, Sequence[SizedGroupPod]], waiting: Sequence[SizedGroupPod]
) -> tuple[QueuedPodGroup, Sequence[SizedGroupPod], Sequence[SizedGroupPod]]:
    """The group with its waiting and its other pods."""
    held = {_key(pod) for pod in waiting}
    pods = members.get("/".join(group.metadata.key), ())
    return group, waiting, [pod for pod in pods if _key(pod) not in held and not pod.is_finished]


def _reason(
    tree: QueueTree, group: QueuedPodGroup, refusal: GroupRefusal, requested: Mapping[str, int], usage: Usage
) -> HeldPod:
    if refusal.is_quota:
        return held_by_capability(tree, refusal.reason, refusal.message, group, requested, usage)
    if tree.closed(group.queue) is not None:
        return held_without_queue(tree, refusal.reason, refusal.message, group)
    held = HeldPod(
        refusal.reason, refusal.message, SHARE_HELP, f"Volcano queue {group.queue}", "/".join(group.metadata.key)
    )
    return held_by_share(tree, held, group, requested, usage)


def _queue(document: Document) -> Queue | None:
    raw: Any = document.value.raw if isinstance(document.value, Unknown) else {}
    try:
        return msgspec.convert(raw, Queue, strict=False, dec_hook=dec_hook)
    except (msgspec.ValidationError, ValueError):
        return None


def _group(group: VolcanoPodGroup) -> QueuedPodGroup:
    return QueuedPodGroup(_meta(group.metadata), group.spec, GroupStatus(phase=group.status.phase))


def _pod(pod: Pod) -> SizedGroupPod:
    conditions = tuple(
        VolcanoCondition(each.type, each.status, each.reason, each.message) for each in pod.status.conditions
    )
    spec = GroupPodSpec(pod.spec.node_name, pod.spec.scheduler_name, pod.spec.priority_class_name)
    status = VolcanoPodStatus(pod.status.phase or "Pending", conditions)
    return SizedGroupPod(_meta(pod.metadata), spec, status, requests_of(pod.spec))


def _meta(meta: ObjectMeta) -> VolcanoMeta:
    return VolcanoMeta(
        name=meta.name,
        namespace=meta.namespace,
        annotations=dict(meta.annotations),
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
    )


def _key(pod: SizedGroupPod) -> str:
    return "/".join(pod.metadata.key)
