"""Reads the configuration of queues among the manifests, and which namespaces and jobs are queued.

One configuration applies. A cluster cannot have several documents; of several, the first is used and the others are
reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shoal.api.claims import ResourceClaimTemplate
from shoal.api.kueue import Configuration
from shoal.api.kueue.configuration import NOT_MANAGED
from shoal.api.limit_ranges import LimitRange
from shoal.api.runtime_classes import RuntimeClass
from shoal.api.selectors import Selector
from shoal.engine.from_api.queues import (
    CountingRules,
    NamespaceRules,
    claimed_of,
    currency_of,
    equivalents_of,
    settings_of,
)
from shoal.engine.queues.settings import Settings
from shoal.store.inventory import Inventory
from shoal.units.errors import UserError, Where


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The settings for all queues and jobs."""

    settings: Settings
    counting: CountingRules
    managed: Selector | None
    """The selector of namespaces whose jobs are queued; None: all except system namespaces."""
    queues_everything: bool

    def manages(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return namespace not in NOT_MANAGED if self.managed is None else self.managed.matches(labels)


def rules_of(inventory: Inventory, warnings: list[str]) -> QueueSettings:
    written = inventory.of(Configuration)
    warnings += [f"{other.where}: a second configuration is not read" for other in written[1:]]
    if not written:
        return QueueSettings(Settings(), _counting(inventory, None), None, queues_everything=False)
    placed = written[0]
    value = placed.value
    try:
        settings = settings_of(value, Where())
    except UserError as error:
        raise placed.reported(error) from error
    chosen = value.managed_jobs_namespace_selector
    managed = None if chosen is None else chosen.selector()
    return QueueSettings(settings, _counting(inventory, value), managed, value.manage_jobs_without_queue_name)


def _counting(inventory: Inventory, configuration: Configuration | None) -> CountingRules:
    overheads = {
        placed.value.metadata.name: placed.value.overhead.pod_fixed
        for placed in inventory.of(RuntimeClass)
        if placed.value.overhead.pod_fixed
    }
    ranges: dict[str, list[LimitRange]] = {}
    for placed in inventory.of(LimitRange):
        ranges.setdefault(placed.value.metadata.namespace, []).append(placed.value)
    rules = {namespace: NamespaceRules.of(found, overheads) for namespace, found in ranges.items()}
    everywhere = NamespaceRules.of((), overheads)
    if configuration is None:
        return CountingRules(rules=rules, everywhere=everywhere)
    mappings = configuration.resources.device_class_mappings
    templates = inventory.of(ResourceClaimTemplate) if mappings else []
    return CountingRules(
        currency_of(configuration),
        equivalents_of(configuration),
        {placed.value.metadata.key: claimed_of(placed.value, mappings) for placed in templates},
        rules,
        everywhere,
    )
