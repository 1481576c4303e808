"""Converts Kueue's configuration to the settings of the discipline and to the rules by which pods are counted.

Without a configuration the settings are their own defaults. With one, what it leaves out is as Kueue has it.
"""

from __future__ import annotations

from shoal.api.kueue import Configuration
from shoal.engine.from_api.queues.equivalents import Equivalents
from shoal.engine.from_api.queues.resource_mapping import ResourceMapping
from shoal.engine.queues.settings import Settings
from shoal.units.errors import Where


def currency_of(configuration: Configuration) -> ResourceMapping:
    resources = configuration.resources
    return ResourceMapping.of(resources.exclude_resource_prefixes, resources.transformations)


def equivalents_of(configuration: Configuration) -> Equivalents:
    worth = configuration.shoal.gpu_equivalents
    return Equivalents({name: quantity.milli_value() for name, quantity in worth.items()})


def settings_of(configuration: Configuration, where: Where) -> Settings:
    """`where` is the document."""
    ready, waits = configuration.wait_for_pods_ready, configuration.waits_for_pods_ready()
    requeuing = ready.requeuing_strategy
    usage, usage_at = configuration.admission_fair_sharing, where.with_path("admissionFairSharing")
    fair, ready_at = configuration.fair_sharing, where.with_path("waitForPodsReady")
    gates, own = configuration.feature_gates, configuration.shoal
    usual = Settings()
    return Settings(
        fair_sharing=fair is not None,
        fair_strategies=fair.preemption_strategies if fair is not None else usual.fair_strategies,
        usage_half_life_s=usage.half_life_s(usage_at) if usage is not None else None,
        usage_sampling_s=usage.sampling_s(usage_at) if usage is not None else usual.usage_sampling_s,
        usage_weights=usage.resource_weights if usage is not None else {},
        wait_for_pods_ready=waits,
        ready_timeout_s=ready.timeout_s(ready_at),
        recovery_timeout_s=ready.recovery_s(ready_at),
        block_admission=waits and ready.block_admission,
        requeue_by=requeuing.timestamp,
        backoff_limit=requeuing.backoff_limit_count,
        backoff_base_s=float(requeuing.backoff_base_seconds),
        backoff_most_s=float(requeuing.backoff_max_seconds),
        ignore_undeclared=configuration.resources.quota_check_strategy == "IgnoreUndeclared",
        placement=own.placement,
        reservations=own.reservations,
        lost_work=own.lost_work,
        min_runtime_s=own.min_runtime_s(where.with_path("shoal")),
        respect_budgets=own.respect_budgets,
        gates=frozenset({*usual.gates, *gates} - {name for name, on in gates.items() if not on}),
    )
