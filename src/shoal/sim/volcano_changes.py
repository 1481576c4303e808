"""Says why a queue of Volcano holds a group, with amounts, and which changes of the queues may let the group go.

The amounts are those of a whole gang. Whether a change suffices has to be tried: other groups may come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import field

from shoal.engine.queues.disciplines.volcano.amounts import Amounts, add, to_api, uncovered
from shoal.engine.queues.disciplines.volcano.group_phases import QUEUE_CYCLE, QUEUE_MISSING
from shoal.engine.queues.disciplines.volcano.objects import ROOT_QUEUE, GroupPod, Queue, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree, Usage
from shoal.sim.queue_corrections import choice_words
from shoal.store.held_pods import HeldPod, QueueChange
from shoal.units.near_texts import nearest_name

_CYCLE_HELP = "Give one queue of the cycle another parent, or none: `spec.parent`."
_QUEUES, _GROUPS = "queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh"


class _Shortage(NamedTuple):
    queue: str
    resource: str
    requested: int
    used: int
    limit: int

    def words(self) -> str:
        requested, used, limit = (_amount(self.resource, each) for each in (self.requested, self.used, self.limit))
        return f"requested {requested} {self.resource}, used {used}, capability {limit} of queue {self.queue}"

    def change(self, queue: Queue) -> QueueChange:
        before = queue.spec.capability[self.resource]
        after = _amount(self.resource, self.used + self.requested)
        return QueueChange(_QUEUES, self.queue, ("spec", "capability", self.resource), str(before), after)


def held_by_queue(reason: str, message: str, group: QueuedPodGroup) -> HeldPod:
    """Without a cause that is known in amounts."""
    name = "/".join(group.metadata.key)
    return HeldPod(reason, message, "", f"Volcano queue {group.queue}", name)


def held_by_capability(
    tree: QueueTree, reason: str, message: str, group: QueuedPodGroup, requested: Amounts, usage: Usage
) -> HeldPod:
    """`usage`: of the other groups, and of the pods of this one that run."""
    kept = held_by_queue(reason, message, group)
    short = list(_shortages(tree, group.queue, requested, usage))
    if not short:
        more = "The group continues when other groups of the queue finish, or with more capability."
        return HeldPod(reason, message, more, kept.queue, kept.group)
    words = f"{message}: {'; '.join(each.words() for each in short)}"
    alone = [each for each in short if each.requested > each.limit]
    more = "The group continues when other groups of the queue finish, or with more capability."
    if alone:
        more = f"The group alone requests more than the capability of queue {alone[0].queue}: waiting does not help."
    changes = tuple(each.change(tree.queues[each.queue]) for each in short)
    return HeldPod(reason, words, more, kept.queue, kept.group, (changes,))


def held_by_share(tree: QueueTree, held: HeldPod, group: QueuedPodGroup, requested: Amounts, usage: Usage) -> HeldPod:
    """Of a group for which the queue deserves too little."""
    short = list(_shortages(tree, group.queue, requested, usage))
    limits = tuple(each.change(tree.queues[each.queue]) for each in short)
    queue = tree.queues[group.queue]
    used, declared = usage.get(group.queue, {}), queue.deserved()
    deserved = []
    for resource, amount in requested.items():
        wanted = used.get(resource, 0) + amount
        if resource in declared and amount and wanted > declared[resource]:
            path = ("spec", "deserved", resource)
            before = str(queue.spec.deserved[resource])
            deserved.append(QueueChange(_QUEUES, group.queue, path, before, _amount(resource, wanted)))
    message, more = held.message, held.help
    if short:
        message = f"{message}: {'; '.join(each.words() for each in short)}"
    if any(each.requested > each.limit for each in short):
        more = f"The group alone requests more than the capability of queue {short[0].queue}: waiting does not help."
    alternatives = tuple(dict.fromkeys(each for each in (limits, tuple(deserved), (*limits, *deserved)) if each))
    return HeldPod(held.code, message, more, held.queue, held.group, alternatives)


def held_without_queue(tree: QueueTree, reason: str, message: str, group: QueuedPodGroup) -> HeldPod:
    """Of a group that names a queue which does not exist, or which admits no group, or is in no tree."""
    kept = held_by_queue(reason, message, group)
    if reason == QUEUE_CYCLE:
        return HeldPod(reason, message, _CYCLE_HELP, kept.queue, kept.group)
    if reason != QUEUE_MISSING:
        return kept
    if (orphan := tree.orphan(group.queue)) is not None:
        return _held_by_orphan(tree, kept, orphan)
    leaves = {name for name in tree.queues if name != ROOT_QUEUE}
    near = nearest_name(group.queue, leaves)
    choice = choice_words(leaves, near)
    words = choice[:1].upper() + choice[1:]
    namespace, name = group.metadata.key
    change = QueueChange(_GROUPS, f"{namespace}/{name}", ("spec", "queue"), group.queue, near)
    return HeldPod(reason, message, words, kept.queue, kept.group, ((change,),) if near else ())


def _held_by_orphan(tree: QueueTree, kept: HeldPod, orphan: Queue) -> HeldPod:
    """`orphan` names a parent that does not exist."""
    others = {name for name in tree.queues if orphan.name not in [one.name for one in tree.path_to_root(name)]}
    near = nearest_name(orphan.parent, others)
    change = QueueChange(_QUEUES, orphan.name, ("spec", "parent"), orphan.parent, near)
    words = f"Queue {orphan.name} names it as parent; {choice_words(others, near)}"
    return HeldPod(kept.code, kept.message, words, kept.queue, kept.group, ((change,),) if near else ())


class SizedGroupPod(GroupPod, frozen=True):
    """A pod of a group, with what it is charged for in its queue."""

    requests: dict[str, int] = field(default_factory=dict)


def requested_by(
    group: QueuedPodGroup, waiting: Sequence[SizedGroupPod], active: Sequence[SizedGroupPod]
) -> dict[str, int]:
    """What the group needs to start, beyond what its active pods use."""
    used: dict[str, int] = {}
    for pod in active:
        add(used, pod.requests)
    needed: dict[str, int] = {}
    for pod in required_pods_first(group, waiting)[: max(group.spec.min_member - len(active), 1)]:
        add(needed, pod.requests)
    least = uncovered(used, group.min_resources())
    return {name: max(needed.get(name, 0), least.get(name, 0)) for name in (*needed, *least)}


def required_pods_first(group: QueuedPodGroup, pods: Sequence[SizedGroupPod]) -> list[SizedGroupPod]:
    """Orders the pods that each role needs before the others."""
    left: dict[str, int] = group.spec.role_minima()
    first: list[SizedGroupPod] = []
    others: list[SizedGroupPod] = []
    for pod in sorted(pods, key=lambda one: one.metadata.name):
        if left.get(pod.role, 0) > 0:
            left[pod.role] -= 1
            first.append(pod)
        else:
            others.append(pod)
    return first + others


def _shortages(tree: QueueTree, name: str, requested: Amounts, usage: Usage) -> Iterator[_Shortage]:
    for queue in tree.path_to_root(name):
        limit, used = queue.capability(), usage.get(queue.name, {})
        for resource, amount in sorted(requested.items()):
            if amount and resource in limit and used.get(resource, 0) + amount > limit[resource]:
                yield _Shortage(queue.name, resource, amount, used.get(resource, 0), limit[resource])


def _amount(resource: str, amount: int) -> str:
    shown: Mapping[str, str] = to_api({resource: amount})
    return shown[resource]
