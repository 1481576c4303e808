"""The types of keda.sh/v1alpha1 as far as decisions read them."""

from __future__ import annotations

from typing import Any

from msgspec import field

from shoal.api.conditions import Condition
from shoal.api.wire import ApiStruct, Timestamp

USUAL_COOLDOWN_S = 300
USUAL_POLLING_S = 30
USUAL_MAX_REPLICAS = 100
USUAL_TARGET = ("apps/v1", "Deployment")

CPU, MEMORY, CRON = "cpu", "memory", "cron"
RESOURCE_TRIGGERS = frozenset({CPU, MEMORY})
AVERAGE_VALUE, VALUE, UTILIZATION = "AverageValue", "Value", "Utilization"

STATIC = "static"
CURRENT_REPLICAS = "currentReplicas"
CURRENT_IF_HIGHER = "currentReplicasIfHigher"
CURRENT_IF_LOWER = "currentReplicasIfLower"
BY_FORMULA = "scalingModifiers"


class TriggerTarget(ApiStruct, frozen=True):
    """The object whose replicas are changed."""

    name: str = ""
    api_version: str = ""
    kind: str = ""
    env_source_container_name: str = ""
    """Whose environment the parameters of triggers name; empty: that of the first container."""

    def group_version_kind(self) -> str:
        version, kind = self.api_version or USUAL_TARGET[0], self.kind or USUAL_TARGET[1]
        return f"{version}.{kind}" if "/" in version else f"/{version}.{kind}"


class AuthenticationRef(ApiStruct, frozen=True):
    name: str = ""
    kind: str = "TriggerAuthentication"


class Trigger(ApiStruct, frozen=True):
    type: str = ""
    name: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    metric_type: str = ""
    use_cached_metrics: bool = False
    authentication_ref: AuthenticationRef | None = None


class Fallback(ApiStruct, frozen=True):
    failure_threshold: int = 0
    replicas: int = 0
    behavior: str = ""


class ScalingModifiers(ApiStruct, frozen=True):
    formula: str = ""
    target: str = ""
    activation_target: str = ""
    metric_type: str = ""


class AutoscalerConfig(ApiStruct, frozen=True):
    name: str = ""
    behavior: dict[str, Any] | None = None


class AdvancedOptions(ApiStruct, frozen=True):
    horizontal_pod_autoscaler_config: AutoscalerConfig | None = None
    restore_to_original_replica_count: bool = False
    scaling_modifiers: ScalingModifiers = ScalingModifiers()


class ScaledObjectSpec(ApiStruct, frozen=True):
    scale_target_ref: TriggerTarget = TriggerTarget()
    polling_interval: int | None = None
    initial_cooldown_period: int | None = None
    cooldown_period: int | None = None
    idle_replica_count: int | None = None
    min_replica_count: int | None = None
    max_replica_count: int | None = None
    advanced: AdvancedOptions | None = None
    triggers: tuple[Trigger, ...] = ()
    fallback: Fallback | None = None

    def modifiers(self) -> ScalingModifiers | None:
        """`None` unless one of their fields is set."""
        found = self.advanced.scaling_modifiers if self.advanced is not None else ScalingModifiers()
        return None if found == ScalingModifiers() else found

    def autoscaler_name(self, name: str) -> str:
        config = self.advanced.horizontal_pod_autoscaler_config if self.advanced is not None else None
        return (config.name if config is not None else "") or f"keda-hpa-{name}"

    def autoscaler_min(self) -> int:
        """The autoscaler never goes to zero; that is decided beside it."""
        return max(self.min_replica_count or 0, 1)

    def autoscaler_max(self) -> int:
        return USUAL_MAX_REPLICAS if self.max_replica_count is None else self.max_replica_count


class Health(ApiStruct, frozen=True):
    """Of one metric."""

    number_of_failures: int | None = None
    status: str = ""


class ScaledObjectStatus(ApiStruct, frozen=True):
    last_active_time: Timestamp | None = None
    conditions: tuple[Condition, ...] = ()
    health: dict[str, Health] = field(default_factory=dict)
    hpa_name: str = ""
    original_replica_count: int | None = None
    paused_replica_count: int | None = None
