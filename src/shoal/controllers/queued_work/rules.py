"""What the configuration says to whoever looks after jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from shoal.api.kueue import Configuration
from shoal.api.kueue.configuration import NOT_MANAGED
from shoal.api.selectors import Selector
from shoal.controllers.queued_work.frameworks import ALL, Frameworks, frameworks_of


class JobRules(msgspec.Struct, frozen=True):
    queues_everything: bool = False
    """Jobs that name no queue are held back as well."""
    managed: Selector | None = None
    """Of namespaces whose jobs are queued; None for all but the system's."""
    tells_ready: bool = True
    """Workloads say whether their pods are ready."""
    labels_to_copy: tuple[str, ...] = ()
    frameworks: Frameworks = ALL
    """Kinds of work that are queued."""
    schedulers: frozenset[str] = frozenset({"shoal"})
    """Who keeps the places of an admission. Pods of others are sent there by a node selector."""

    def manages(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return namespace not in NOT_MANAGED if self.managed is None else self.managed.matches(labels)


Rules = Callable[[], JobRules | None]
"""The present ones; None while the queues of this cluster are somebody else's."""


def job_rules_of(configuration: Configuration, schedulers: frozenset[str] = frozenset({"shoal"})) -> JobRules:
    chosen = configuration.managed_jobs_namespace_selector
    return JobRules(
        queues_everything=configuration.manage_jobs_without_queue_name,
        managed=None if chosen is None else chosen.selector(),
        tells_ready=configuration.waits_for_pods_ready(),
        labels_to_copy=configuration.integrations.label_keys_to_copy,
        frameworks=frameworks_of(configuration),
        schedulers=schedulers,
    )
