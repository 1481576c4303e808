"""The part of Kueue's configuration that the controllers of queued jobs and pods follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from shoal.api.kueue import Configuration
from shoal.api.kueue.configuration import NOT_MANAGED
from shoal.api.selectors import Selector
from shoal.controllers.queued_work.frameworks import ALL, Frameworks, frameworks_of


class JobRules(msgspec.Struct, frozen=True):
    queues_everything: bool = False
    """Jobs without a queue name are suspended as well (`manageJobsWithoutQueueName`)."""
    managed: Selector | None = None
    """Selects the namespaces whose jobs are queued; None: all except system namespaces."""
    reports_pods_ready: bool = True
    """Workloads get the condition PodsReady."""
    labels_to_copy: tuple[str, ...] = ()
    frameworks: Frameworks = ALL
    """The kinds of jobs that are queued."""
    schedulers: frozenset[str] = frozenset({"shoal"})
    """Schedulers that keep the places of an admission. Pods of other schedulers get a node selector."""

    def manages(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return namespace not in NOT_MANAGED if self.managed is None else self.managed.matches(labels)


Rules = Callable[[], JobRules | None]
"""Returns the present rules; None while Kueue itself decides about admission."""


def job_rules_of(configuration: Configuration, schedulers: frozenset[str] = frozenset({"shoal"})) -> JobRules:
    chosen = configuration.managed_jobs_namespace_selector
    return JobRules(
        queues_everything=configuration.manage_jobs_without_queue_name,
        managed=None if chosen is None else chosen.selector(),
        reports_pods_ready=configuration.waits_for_pods_ready(),
        labels_to_copy=configuration.integrations.label_keys_to_copy,
        frameworks=frameworks_of(configuration),
        schedulers=schedulers,
    )
