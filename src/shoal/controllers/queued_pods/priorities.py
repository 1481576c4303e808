"""Determines the priority of a Workload: from the WorkloadPriorityClass of its label, else from its pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import WORKLOAD_PRIORITY_CLASSES
from shoal.client.item import Item
from shoal.client.kind import PRIORITY_CLASSES
from shoal.client.served import Served
from shoal.controllers.queued_pods.kueue_names import GROUP, PRIORITY_LABEL
from shoal.controllers.queued_pods.workload_drafts import WorkloadPriority


class UnknownClassError(Exception):
    """The WorkloadPriorityClass does not exist."""


class Priorities:
    def __init__(self, context: Context, served: Served) -> None:
        self._context = context
        self._served = served

    def of(self, labels: Mapping[str, str], spec: Mapping[str, Any]) -> WorkloadPriority:
        """`spec` is the pods' specification. Raises UnknownClassError."""
        named = labels.get(PRIORITY_LABEL, "")
        if named:
            kind = self._served.find(WORKLOAD_PRIORITY_CLASSES)
            item = self._context.informers.of(kind).get("", named) if kind is not None else None
            if item is None:
                raise UnknownClassError(f'workloadpriorityclasses.kueue.x-k8s.io "{named}" not found')
            return WorkloadPriority(int(item.obj().get("value") or 0), GROUP, WORKLOAD_PRIORITY_CLASSES.name, named)
        return self._of_pods(str(spec.get("priorityClassName") or ""), spec.get("priority"))

    def _of_pods(self, name: str, value: int | None) -> WorkloadPriority:
        """Pods have a priority; templates only name a class, or get the default class."""
        if value is None:
            classes = self._context.informers.of(PRIORITY_CLASSES)
            item = classes.get("", name) if name else next((one for one in classes if _is_default(one)), None)
            if item is None:
                return WorkloadPriority()
            name, value = item.name, item.obj().get("value")
        if not name:
            return WorkloadPriority(int(value or 0))
        return WorkloadPriority(int(value or 0), PRIORITY_CLASSES.group, PRIORITY_CLASSES.name, name)


def _is_default(item: Item) -> bool:
    return item.obj().get("globalDefault") is True
