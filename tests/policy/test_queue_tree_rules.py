"""Queues are looked up by their names: a check of one queue never reads all of them."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.policy.advice import Obj
from shoal.policy.kinds import GroupKind
from shoal.policy.object_set import ObjectSet
from shoal.policy.rules.queue_trees import cycles, quotas


def queue(name: str, parent: str, quota: int) -> Obj:
    spec = {"parentQueue": parent, "resources": {"gpu": {"quota": quota}}}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


class CountedSet(ObjectSet):
    def __init__(self, objects: Iterable[Obj]) -> None:
        super().__init__(objects)
        self.lists = 0

    def all(self, kind: GroupKind, namespace: str = "") -> Iterable[Obj]:
        self.lists += 1
        return super().all(kind, namespace)


def test_a_cycle_and_a_quota_above_the_parent_are_found_without_a_list_of_all_queues() -> None:
    context = CountedSet([queue("a", "b", 6), queue("b", "a", 2)])
    child = queue("a", "b", 6)
    assert [each.reason for each in (*cycles(child, context), *quotas(child, context))] == [
        "QueueCycle",
        "QuotaAboveParent",
    ]
    assert context.lists == 0
