"""A fixed set of objects in which rules look up others: the objects of files, of a cluster, or of both.

Guarantees: an object is reported as missing only where that is certain. All objects of some kinds are known; of other
kinds, as in files, an object is missing only if the set has another object of the kind in the same namespace. The
PriorityClasses that every cluster has are never missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from shoal.api.budget_report import BudgetReport, check_budget_report
from shoal.api.cost_budgets import NO_BUDGETS, CostBudgets, cost_budgets_of
from shoal.api.decode import convert
from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.api.taints import Taint
from shoal.policy.advice import AdvisedNode, Obj
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import BUDGET_REPORT, CLUSTER_WIDE, NODE, PRIORITY_CLASS, GroupKind
from shoal.units.errors import UserError, Where

_BUILT_IN = "system-"


@dataclass(frozen=True, slots=True)
class AdvisedObjects:
    """What was read of a cluster."""

    objects: list[Obj] = field(default_factory=list)
    """By kind, then by namespace and name."""
    complete: set[GroupKind] = field(default_factory=set)
    """Kinds of which all objects are known."""
    notes: list[str] = field(default_factory=list)


class ObjectSet:
    def __init__(self, objects: Iterable[Obj], complete: Collection[GroupKind] = ()) -> None:
        """`complete`: kinds of which the set has all objects. Of two objects of one name the later one is found."""
        self._complete = frozenset(complete)
        self._kinds: dict[GroupKind, dict[tuple[str, str], Obj]] = {}
        self._namespaces: dict[GroupKind, set[str]] = {}
        self._nodes: tuple[AdvisedNode, ...] | None = None
        for obj in objects:
            kind, key = kind_of(obj), key_of(obj)
            self._kinds.setdefault(kind, {})[key] = obj
            self._namespaces.setdefault(kind, set()).add(key[0])

    def nodes(self) -> Iterable[AdvisedNode]:
        """Without those that have no name: a cluster rejects them."""
        if self._nodes is None:
            self._nodes = tuple(_node(obj) for (_, name), obj in self._kinds.get(NODE, {}).items() if name)
        return self._nodes

    def find(self, kind: GroupKind, namespace: str, name: str) -> Obj | None:
        return self._kinds.get(kind, {}).get((namespace, name))

    def all(self, kind: GroupKind, namespace: str = "") -> Iterable[Obj]:
        return [obj for (space, _), obj in self._kinds.get(kind, {}).items() if namespace in ("", space)]

    def lacks(self, kind: GroupKind, namespace: str, name: str) -> bool:
        if (namespace, name) in self._kinds.get(kind, {}) or (kind == PRIORITY_CLASS and name.startswith(_BUILT_IN)):
            return False
        return kind in self._complete or namespace in self._namespaces.get(kind, ())

    def cost_budgets(self) -> CostBudgets:
        """Of the last report among the objects, as of its time."""
        found = NO_BUDGETS
        for obj in self.all(BUDGET_REPORT):
            try:
                report = convert(obj, BudgetReport, Where())
                check_budget_report(report, Where())
            except UserError:
                continue
            found = cost_budgets_of(report)
        return found


def kind_of(obj: Obj) -> GroupKind:
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    return GroupKind(group, str(obj.get("kind") or ""))


def key_of(obj: Obj) -> tuple[str, str]:
    """Namespace and name, in the namespace that a server would choose."""
    meta = string_keys(obj.get("metadata"))
    namespace = "" if kind_of(obj) in CLUSTER_WIDE else str(meta.get("namespace") or DEFAULT_NAMESPACE)
    return namespace, str(meta.get("name") or "")


def with_namespace(obj: Obj) -> Obj:
    """The object with the namespace that a server would give it."""
    namespace, _ = key_of(obj)
    meta = string_keys(obj.get("metadata"))
    return {**obj, "metadata": {**meta, "namespace": namespace}} if namespace else obj


def is_advised(obj: Obj) -> bool:
    """Whether a user can correct the object: no other object created it, and it is not being deleted."""
    meta = string_keys(obj.get("metadata"))
    return not meta.get("deletionTimestamp") and not any(
        owner.get("controller") for owner in maps(meta.get("ownerReferences"))
    )


def _node(obj: Obj) -> AdvisedNode:
    labels = string_keys(dig(obj, "metadata", "labels"))
    taints = tuple(_taints(maps(dig(obj, "spec", "taints"))))
    return AdvisedNode({key: str(value) for key, value in labels.items()}, taints)


def _taints(written: Iterable[Obj]) -> Iterator[Taint]:
    for raw in written:
        try:
            yield msgspec.convert(raw, Taint)
        except msgspec.ValidationError:
            continue
