"""The priority of a workload: of the class that its label names, else of its pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.controllers.queued_pods.composing import Rank
from shoal.controllers.queued_pods.words import GROUP, PRIORITY_LABEL
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import WORKLOAD_PRIORITY_CLASSES
from shoal.store.live.item import Item
from shoal.store.live.kind import PRIORITY_CLASSES
from shoal.store.live.served import Served


class UnknownClassError(Exception):
    """There is no such WorkloadPriorityClass."""


class Priorities:
    def __init__(self, context: Context, served: Served) -> None:
        self._context = context
        self._served = served

    def of(self, labels: Mapping[str, str], spec: Mapping[str, Any]) -> Rank:
        """`spec` is of the pods. Raises UnknownClassError."""
        named = labels.get(PRIORITY_LABEL, "")
        if named:
            kind = self._served.find(WORKLOAD_PRIORITY_CLASSES)
            item = self._context.informers.of(kind).get("", named) if kind is not None else None
            if item is None:
                raise UnknownClassError(f'workloadpriorityclasses.kueue.x-k8s.io "{named}" not found')
            return Rank(int(item.obj().get("value") or 0), GROUP, WORKLOAD_PRIORITY_CLASSES.name, named)
        return self._of_pods(str(spec.get("priorityClassName") or ""), spec.get("priority"))

    def _of_pods(self, name: str, value: int | None) -> Rank:
        """Pods know their priority; templates only name a class, or take the default one."""
        if value is None:
            classes = self._context.informers.of(PRIORITY_CLASSES)
            item = classes.get("", name) if name else next((one for one in classes if _is_default(one)), None)
            if item is None:
                return Rank()
            name, value = item.name, item.obj().get("value")
        if not name:
            return Rank(int(value or 0))
        return Rank(int(value or 0), PRIORITY_CLASSES.group, PRIORITY_CLASSES.name, name)


def _is_default(item: Item) -> bool:
    return item.obj().get("globalDefault") is True
