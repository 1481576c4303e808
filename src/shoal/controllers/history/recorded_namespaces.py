"""Follows namespaces for the recorder: whose pods they have, and which budgets of Teams they carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from shoal.api.cost_budgets import team_of
from shoal.api.meta import Namespace
from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import NAMESPACES
from shoal.cost.records import Holder
from shoal.store.history.pod_rows import RecordedPod, holder_of
from shoal.store.history.team_budgets import BudgetedNamespace, budgeted


class RecordedNamespaces:
    def __init__(self, context: Context) -> None:
        self._informer = context.informers.of(NAMESPACES)
        self._teams: Counter[str] = Counter()
        """Those of namespaces."""
        self._has_changed = True
        self._informer.on_change(self._changed)

    def holder(self, pod: RecordedPod) -> Holder:
        return holder_of(pod, self._labels(pod.metadata.namespace), self._teams)

    def changed_budgets(self) -> list[BudgetedNamespace] | None:
        """The namespaces with a budget; None if nothing has changed since they were stored."""
        if not self._has_changed:
            return None
        return budgeted(item.read(Namespace).metadata for item in self._informer)

    def stored(self) -> None:
        """Call it once the changed budgets are stored."""
        self._has_changed = False

    def _labels(self, name: str) -> Mapping[str, str]:
        item = self._informer.get("", name)
        return {} if item is None else item.read(Namespace).metadata.labels

    def _changed(self, before: Item | None, after: Item | None) -> None:
        self._has_changed = True
        for item, count in ((before, -1), (after, 1)):
            if item is not None:
                self._teams[team_of(item.read(Namespace).metadata.labels, {}, item.name)] += count
        self._teams = +self._teams
