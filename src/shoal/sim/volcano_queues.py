"""Decides which pods of a set of manifests Volcano's queues hold back, with the rules of the controllers, once.

Groups are enqueued as by the enqueue controller. The pods of enqueued groups are then admitted as in the scheduling
loop: a queue may be full nevertheless, or its quota may be used (`volcano_quotas`).

Rejected: the admission of the scheduling loop itself. It needs caches that change; manifests are decided once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.decode import Document, Unknown
from shoal.api.groups.volcano import GROUP_ANNOTATION, VolcanoPodGroup
from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod
from shoal.api.wire import dec_hook
from shoal.engine.events import Event
from shoal.engine.queues.disciplines.volcano.enqueue import PodGroupCandidate, enqueue
from shoal.engine.queues.disciplines.volcano.group_phases import GroupRefusal
from shoal.engine.queues.disciplines.volcano.group_usage import choose_pods
from shoal.engine.queues.disciplines.volcano.objects import (
    GroupPod,
    GroupStatus,
    Queue,
    QueuedPodGroup,
    VolcanoCondition,
    VolcanoMeta,
    VolcanoPodStatus,
)
from shoal.engine.queues.disciplines.volcano.pod_counts import count_pods
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree, Usage
from shoal.sim.volcano_changes import (
    held_by_capability,
    held_by_share,
    held_without_queue,
    requested_by,
    summed,
    together,
)
from shoal.sim.volcano_shares import held_by_shares
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


def held_by_volcano(
    documents: Sequence[Document], waiting: Iterable[Pod], priorities: Mapping[str, int], events: Sequence[Event]
) -> dict[str, HeldPod]:
    """The reason by held pod, or by group if it has no pods yet. `waiting`: existing and future pods to place."""
    tree = volcano_tree(documents)
    if tree is None:
        return {}
    groups = volcano_groups(documents)
    bound = (each.value for each in documents if isinstance(each.value, Pod) and each.value.spec.node_name)
    members: dict[str, list[GroupPod]] = {}
    for pod in (*bound, *waiting):
        of = f"{pod.metadata.namespace}/{pod.metadata.annotations.get(GROUP_ANNOTATION, '')}"
        if of in groups:
            members.setdefault(of, []).append(_pod(pod))
    ranks = {name: max((priorities.get(_key(pod), 0) for pod in members.get(name, ())), default=0) for name in groups}
    candidates = [
        PodGroupCandidate(group, count_pods(members.get(name, ())), ranks[name]) for name, group in groups.items()
    ]
    decided = enqueue(tree, candidates)
    refused = {"/".join(key): refusal for key, refusal in decided.refused.items()}
    enqueued = {name: group for name, group in groups.items() if name not in refused}
    usage = _usage(tree, groups, members)
    found = held_by_shares(tree, enqueued, events, usage)
    refusals: dict[str, GroupRefusal] = {}
    left: dict[str, list[GroupPod]] = {}
    shared = {id(hold): hold for hold in found.values()}
    for name, group in sorted(groups.items(), key=lambda one: (-ranks[one[0]], one[1].metadata.created_s, one[0])):
        unplaced = [pod for pod in members.get(name, ()) if not pod.spec.node_name and not pod.is_finished]
        unplaced = [pod for pod in unplaced if _key(pod) not in found]
        active = sum(1 for pod in members.get(name, ()) if pod.spec.node_name and not pod.is_finished)
        refusal = refused.get(name)
        chosen: list[GroupPod] = []
        if refusal is None:
            chosen, refusal = choose_pods(tree, group, unplaced, active, usage)
        if refusal is None:
            continue
        refusals[name] = refusal
        admitted = {_key(pod) for pod in chosen}
        left[name] = [pod for pod in unplaced if _key(pod) not in admitted]
    taken = together(usage, summed(decided.allocated, decided.reserved))
    for name, refusal in refusals.items():
        kept = _reason(tree, groups[name], refusal, requested_by(*_parts(groups[name], members, left[name])), taken)
        found |= {_key(pod): kept for pod in left[name]}
        if not members.get(name):
            found[name] = kept
    for hold in shared.values():
        group = groups[hold.group]
        held = [pod for pod in members[hold.group] if found.get(_key(pod)) is hold]
        kept = held_by_share(tree, hold, group, requested_by(*_parts(group, members, held)), usage)
        found |= {key: kept for key, each in found.items() if each is hold}
    return found


def _parts(
    group: QueuedPodGroup, members: Mapping[str, Sequence[GroupPod]], waiting: Sequence[GroupPod]
) -> tuple[QueuedPodGroup, Sequence[GroupPod], Sequence[GroupPod]]:
    """The group with its waiting and its other pods."""
    held = {_key(pod) for pod in waiting}
    pods = members.get("/".join(group.metadata.key), ())
    return group, waiting, [pod for pod in pods if _key(pod) not in held and not pod.is_finished]


def _usage(tree: QueueTree, groups: Mapping[str, QueuedPodGroup], members: Mapping[str, list[GroupPod]]) -> Usage:
    usage: Usage = {}
    for name, pods in members.items():
        for pod in pods:
            if pod.spec.node_name and not pod.is_finished:
                tree.charge(usage, groups[name].queue, pod.requests())
    return usage


def _reason(
    tree: QueueTree, group: QueuedPodGroup, refusal: GroupRefusal, requested: Mapping[str, int], usage: Usage
) -> HeldPod:
    if refusal.is_quota:
        return held_by_capability(tree, refusal.reason, refusal.message, group, requested, usage)
    return held_without_queue(tree, refusal.reason, refusal.message, group)


def _queue(document: Document) -> Queue | None:
    raw: Any = document.value.raw if isinstance(document.value, Unknown) else {}
    try:
        return msgspec.convert(raw, Queue, strict=False, dec_hook=dec_hook)
    except (msgspec.ValidationError, ValueError):
        return None


def _group(group: VolcanoPodGroup) -> QueuedPodGroup:
    return QueuedPodGroup(_meta(group.metadata), group.spec, GroupStatus(phase=group.status.phase))


def _pod(pod: Pod) -> GroupPod:
    conditions = tuple(
        VolcanoCondition(each.type, each.status, each.reason, each.message) for each in pod.status.conditions
    )
    return GroupPod(_meta(pod.metadata), pod.spec, VolcanoPodStatus(pod.status.phase or "Pending", conditions))


def _meta(meta: ObjectMeta) -> VolcanoMeta:
    return VolcanoMeta(
        name=meta.name,
        namespace=meta.namespace,
        annotations=dict(meta.annotations),
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
    )


def _key(pod: GroupPod) -> str:
    return "/".join(pod.metadata.key)
