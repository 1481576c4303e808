"""Which pods Volcano's queues keep back in a set of manifests: decided by the controllers' own arithmetic, once.

Groups that were not let in are looked at as the controller looks at them, and pods of those that were as the desk does
beside the brain: a queue may be full all the same, or have had what it deserves (`volcano_shares`).

Rejected: the desk itself. It hears of caches that go on changing; of a picture one look is all there is.
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
from shoal.cli.volcano_shares import kept_by_shares
from shoal.controllers.volcano.enqueueing import Candidate, enqueue
from shoal.controllers.volcano.group_room import choose
from shoal.controllers.volcano.phases import Refusal
from shoal.controllers.volcano.queue_tree import QueueTree, Usage
from shoal.controllers.volcano.shares import Shares
from shoal.controllers.volcano.sharing import capacity_of
from shoal.controllers.volcano.sights import Condition, GroupPod, GroupStatus, Meta, PodGroup, PodStatus, Queue
from shoal.controllers.volcano.tallies import tally
from shoal.engine.events import NodeFacts
from shoal.store.kept import Kept

_GROUP = "scheduling.volcano.sh/"


def is_queue(document: Document) -> bool:
    value = document.value
    return isinstance(value, Unknown) and value.kind == "Queue" and value.api_version.startswith(_GROUP)


def volcano_tree(documents: Iterable[Document]) -> QueueTree | None:
    """None where there are no such queues."""
    queues = [queue for document in documents if is_queue(document) and (queue := _queue(document)) is not None]
    return QueueTree(queues) if queues else None


def volcano_groups(documents: Iterable[Document]) -> dict[str, PodGroup]:
    found = (each.value for each in documents if isinstance(each.value, VolcanoPodGroup))
    return {group.metadata.key: _group(group) for group in found}


def kept_by_volcano(
    documents: Sequence[Document], waiting: Iterable[Pod], priorities: Mapping[str, int], nodes: Iterable[NodeFacts]
) -> dict[str, Kept]:
    """By pod; by group where it has no pods yet. `waiting`: pods to be placed, those that are to be made too."""
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
    candidates = [Candidate(group, tally(members.get(name, ())), ranks[name]) for name, group in groups.items()]
    refused = {"/".join(key): refusal for key, refusal in enqueue(tree, candidates).refused.items()}
    let_in = {name: group for name, group in groups.items() if name not in refused}
    found = kept_by_shares(Shares(tree, capacity_of(nodes)), let_in, members, ranks)
    usage = _usage(tree, groups, members)
    for name, group in sorted(groups.items(), key=lambda one: (-ranks[one[0]], one[1].metadata.created_s, one[0])):
        looking = [pod for pod in members.get(name, ()) if not pod.spec.node_name and not pod.has_ended]
        looking = [pod for pod in looking if _key(pod) not in found]
        there = sum(1 for pod in members.get(name, ()) if pod.spec.node_name and not pod.has_ended)
        refusal = refused.get(name)
        chosen: list[GroupPod] = []
        if refusal is None:
            chosen, refusal = choose(tree, group, looking, there, usage)
        if refusal is None:
            continue
        kept = _kept(name, group, refusal)
        let_go = {_key(pod) for pod in chosen}
        found |= {_key(pod): kept for pod in looking if _key(pod) not in let_go}
        if not members.get(name):
            found[name] = kept
    return found


def _usage(tree: QueueTree, groups: Mapping[str, PodGroup], members: Mapping[str, list[GroupPod]]) -> Usage:
    usage: Usage = {}
    for name, pods in members.items():
        for pod in pods:
            if pod.spec.node_name and not pod.has_ended:
                tree.charge(usage, groups[name].queue, pod.requests())
    return usage


def _kept(name: str, group: PodGroup, refusal: Refusal) -> Kept:
    more = "It goes on when others of the queue end, or with more capability." if refusal.is_quota else ""
    return Kept(refusal.reason, refusal.message, more, f"Volcano queue {group.queue}", name)


def _queue(document: Document) -> Queue | None:
    raw: Any = document.value.raw if isinstance(document.value, Unknown) else {}
    try:
        return msgspec.convert(raw, Queue, strict=False, dec_hook=dec_hook)
    except (msgspec.ValidationError, ValueError):
        return None


def _group(group: VolcanoPodGroup) -> PodGroup:
    return PodGroup(_meta(group.metadata), group.spec, GroupStatus(phase=group.status.phase))


def _pod(pod: Pod) -> GroupPod:
    conditions = tuple(Condition(each.type, each.status, each.reason, each.message) for each in pod.status.conditions)
    return GroupPod(_meta(pod.metadata), pod.spec, PodStatus(pod.status.phase or "Pending", conditions))


def _meta(meta: ObjectMeta) -> Meta:
    return Meta(
        name=meta.name,
        namespace=meta.namespace,
        annotations=dict(meta.annotations),
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
    )


def _key(pod: GroupPod) -> str:
    return "/".join(pod.metadata.key)
