"""Provides the rules by which workloads are read: priority classes, limit ranges, runtime classes, device mappings and
the configuration, updated as they change.

A change of any of them may change the requests of workloads, and all workloads are read again. That is rare, because
administrators write these objects by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from shoal.api.claims import ResourceClaimTemplate
from shoal.api.disruption import PriorityClass
from shoal.api.kueue import Configuration, WorkloadPriorityClass
from shoal.api.limit_ranges import LimitRange
from shoal.api.runtime_classes import RuntimeClass
from shoal.api.wire import ApiStruct
from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import PRIORITY_CLASSES, RESOURCE_CLAIM_TEMPLATES, Kind
from shoal.engine.from_api import Priorities
from shoal.engine.from_api.queues import (
    CountingRules,
    NamespaceRules,
    WorkloadPriorities,
    WorkloadReader,
    claimed_of,
    currency_of,
    equivalents_of,
    settings_of,
)
from shoal.engine.queues.settings import Settings
from shoal.store.object_faults import UNREADABLE, ObjectFault, ObjectFaults, message_of
from shoal.store.watched.reading import value_of
from shoal.units.errors import UserError, Where

LIMIT_RANGES = Kind("", "v1", "limitranges", "LimitRange")
RUNTIME_CLASSES = Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", is_namespaced=False)

V = TypeVar("V", bound=ApiStruct)


class QueueRules:
    """`moved` is called when workloads must be read again."""

    def __init__(
        self, context: Context, troubles: ObjectFaults, moved: Callable[[], None], configuration: Configuration | None
    ) -> None:
        self._context = context
        self._troubles = troubles
        self._moved = moved
        self._needed: list[Kind] = []
        self._ranges: dict[tuple[str, str], LimitRange] = {}
        self._runtimes: dict[tuple[str, str], RuntimeClass] = {}
        self._classes: dict[tuple[str, str], PriorityClass] = {}
        self._own_classes: dict[tuple[str, str], WorkloadPriorityClass] = {}
        self._templates: dict[tuple[str, str], ResourceClaimTemplate] = {}
        self._configuration = configuration
        self.settings = Settings()
        self.priorities = Priorities()
        self._reader: WorkloadReader | None = None
        self._follow(LIMIT_RANGES, LimitRange, self._ranges)
        self._follow(RUNTIME_CLASSES, RuntimeClass, self._runtimes)
        self._follow(PRIORITY_CLASSES, PriorityClass, self._classes)
        self.configure(configuration)

    @property
    def configuration(self) -> Configuration | None:
        return self._configuration

    def configure(self, configuration: Configuration | None) -> None:
        """Raises UserError for an invalid configuration; the previous rules then stay in force."""
        settings = Settings() if configuration is None else settings_of(configuration, Where())
        self.settings, self._configuration = settings, configuration
        if configuration is not None and configuration.resources.device_class_mappings and not self._templates:
            self._follow(RESOURCE_CLAIM_TEMPLATES, ResourceClaimTemplate, self._templates)
        self._stir()

    def follow_classes(self, kind: Kind) -> None:
        """Follow the WorkloadPriorityClass objects, once the kind is served."""
        self._follow(kind, WorkloadPriorityClass, self._own_classes)

    async def synced(self) -> None:
        await self._context.informers.synced(self._needed)

    def reader(self, local_queues: Mapping[str, frozenset[str]]) -> WorkloadReader:
        """`local_queues`: by local queue, the resources that its cluster queue covers; read while the reader is in
        use."""
        if self._reader is None:
            self.priorities = Priorities(self._classes.values())
            classes = WorkloadPriorities(self._own_classes.values(), self.priorities)
            self._reader = WorkloadReader(self.settings, self._counting(), classes, local_queues)
        return self._reader

    # internals

    def _stir(self) -> None:
        self._reader = None
        self._moved()

    def _follow(self, kind: Kind, wanted: type[V], known: dict[tuple[str, str], V]) -> None:
        self._needed.append(kind)

        def changed(before: Item | None, after: Item | None) -> None:
            item = after or before
            if item is None:
                return
            name = f"{item.namespace}/{item.name}" if item.namespace else item.name
            value = None
            self._troubles.settle(kind, name)
            if after is not None:
                try:
                    value = value_of(kind, after, wanted)
                except UserError as error:
                    self._troubles.put(ObjectFault(kind, name, after.uid, UNREADABLE, message_of(error)))
            if value is None:
                known.pop(item.key, None)
            else:
                known[item.key] = value
            self._stir()

        self._context.informers.of(kind).on_change(changed)

    def _counting(self) -> CountingRules:
        overheads = {
            each.metadata.name: each.overhead.pod_fixed for each in self._runtimes.values() if each.overhead.pod_fixed
        }
        by_namespace: dict[str, list[LimitRange]] = {}
        for found in self._ranges.values():
            by_namespace.setdefault(found.metadata.namespace, []).append(found)
        rules = {namespace: NamespaceRules.of(found, overheads) for namespace, found in by_namespace.items()}
        everywhere = NamespaceRules.of((), overheads)
        configuration = self._configuration
        if configuration is None:
            return CountingRules(rules=rules, everywhere=everywhere)
        mappings = configuration.resources.device_class_mappings
        claims = {each.metadata.key: claimed_of(each, mappings) for each in self._templates.values()}
        return CountingRules(currency_of(configuration), equivalents_of(configuration), claims, rules, everywhere)
