"""Kueue's own configuration, as far as it decides: what is counted, how quota is shared, how long pods may take.

What the file says about the process that Kueue is (ports, certificates, leader election) is ignored, as every field
that is not known. Lengths of time stay text; methods ending in `_s` give seconds.

`waitForPodsReady` is on where v1beta2 does not mention it and off where v1beta1 does not; `enable` keeps the two apart.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from shoal.api.kueue.amounts import check_bound
from shoal.api.kueue.durations import seconds
from shoal.api.kueue.own_settings import OwnSettings
from shoal.api.kueue.topology_requests import Count
from shoal.api.meta import ObjectMeta
from shoal.api.selectors import LabelSelector
from shoal.api.wire import ApiStruct, Quantities
from shoal.units.errors import UserError, Where, excerpt

PreemptionStrategy = Literal["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
_HERE = Where()

NO_WAITING = "DisableWaitForPodsReady"

Weight = Annotated[float, Meta(ge=0)]

NOT_MANAGED = ("kube-system", "kueue-system")
"""Namespaces whose jobs are left alone unless the file has a selector of its own."""


class RequeuingStrategy(ApiStruct, frozen=True):
    timestamp: Literal["Eviction", "Creation"] = "Eviction"
    backoff_limit_count: Count | None = None
    backoff_base_seconds: Count = 60
    backoff_max_seconds: Count = 3600


class WaitForPodsReady(ApiStruct, frozen=True):
    enable: bool = True
    timeout: str = "30m"
    recovery_timeout: str | None = None
    block_admission: bool = False
    requeuing_strategy: RequeuingStrategy = field(default_factory=RequeuingStrategy)

    def timeout_s(self, where: Where = _HERE) -> float:
        return seconds(self.timeout, where.below("timeout"))

    def recovery_s(self, where: Where = _HERE) -> float | None:
        """For pods lost after the start; None if their replacements are not waited for."""
        if self.recovery_timeout is None:
            return self.timeout_s(where)
        return seconds(self.recovery_timeout, where.below("recoveryTimeout")) or None


class FairSharingConfig(ApiStruct, frozen=True):
    """Being there turns fair sharing on."""

    preemption_strategies: tuple[PreemptionStrategy, ...] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


class AdmissionFairSharing(ApiStruct, frozen=True):
    """A half life of zero forgets at once. A resource without a weight has weight 1."""

    usage_half_life_time: str = "0"
    usage_sampling_interval: str = "5m"
    resource_weights: dict[str, Weight] = field(default_factory=dict)

    def half_life_s(self, where: Where = _HERE) -> float:
        return seconds(self.usage_half_life_time, where.below("usageHalfLifeTime"))

    def sampling_s(self, where: Where = _HERE) -> float:
        return seconds(self.usage_sampling_interval, where.below("usageSamplingInterval"))


class Transformation(ApiStruct, frozen=True):
    """`outputs` are per unit of `input`. Replacing by nothing takes the input out of the count."""

    input: str
    strategy: Literal["Retain", "Replace"] = "Retain"
    multiply_by: str = ""
    outputs: Quantities = field(default_factory=dict)


class DeviceClassMapping(ApiStruct, frozen=True):
    """The name under which quota counts the devices of these DRA classes."""

    name: str
    device_class_names: tuple[str, ...] = ()


class ResourceSettings(ApiStruct, frozen=True):
    quota_check_strategy: Literal["BlockUndeclared", "IgnoreUndeclared"] = "BlockUndeclared"
    exclude_resource_prefixes: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()
    device_class_mappings: tuple[DeviceClassMapping, ...] = ()


class Integrations(ApiStruct, frozen=True):
    frameworks: tuple[str, ...] = ()
    """Empty: all."""
    external_frameworks: tuple[str, ...] = ()
    label_keys_to_copy: tuple[str, ...] = ()


class Configuration(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    """Never written; every object has one."""
    namespace: str = ""
    manage_jobs_without_queue_name: bool = False
    managed_jobs_namespace_selector: LabelSelector | None = None
    wait_for_pods_ready: WaitForPodsReady = field(default_factory=WaitForPodsReady)
    integrations: Integrations = field(default_factory=Integrations)
    fair_sharing: FairSharingConfig | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    resources: ResourceSettings = field(default_factory=ResourceSettings)
    feature_gates: dict[str, bool] = field(default_factory=dict)
    shoal: OwnSettings = field(default_factory=OwnSettings)

    def waits_for_pods_ready(self) -> bool:
        """On by default; Kueue keeps a gate for those that do not want it."""
        return self.wait_for_pods_ready.enable and not self.feature_gates.get(NO_WAITING, False)


def check_configuration(configuration: Configuration, where: Where) -> None:
    wait, here = configuration.wait_for_pods_ready, where.below("waitForPodsReady")
    wait.timeout_s(here)
    wait.recovery_s(here)
    sharing = configuration.admission_fair_sharing
    if sharing is not None:
        sharing.half_life_s(where.below("admissionFairSharing"))
        sharing.sampling_s(where.below("admissionFairSharing"))
    if configuration.fair_sharing is not None:
        _check_strategies(configuration.fair_sharing.preemption_strategies, where.below("fairSharing"))
    if configuration.managed_jobs_namespace_selector is not None:
        configuration.managed_jobs_namespace_selector.check(where.below("managedJobsNamespaceSelector"))
    _check_resources(configuration.resources, where.below("resources"))
    configuration.shoal.check(where.below("shoal"))


def _check_strategies(strategies: tuple[PreemptionStrategy, ...], where: Where) -> None:
    where = where.below("preemptionStrategies")
    if len(set(strategies)) != len(strategies):
        raise UserError("a strategy is named twice", where=where)
    if strategies[:1] == ("LessThanInitialShare",) and len(strategies) > 1:
        raise UserError("LessThanOrEqualToFinalShare can only come first", where=where, fix="turn the two around")


def _check_resources(resources: ResourceSettings, where: Where) -> None:
    seen: set[str] = set()
    for index, one in enumerate(resources.transformations):
        here = where.below(f"transformations[{index}]")
        if not one.input:
            raise UserError("is required", where=here.below("input"))
        if one.input in seen:
            raise UserError(f"{excerpt(one.input)} is transformed twice", where=here.below("input"))
        seen.add(one.input)
        for name, amount in one.outputs.items():
            check_bound(name, amount, here.below("outputs").key(name))
