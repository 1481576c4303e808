"""The autoscaling/v2 types of a HorizontalPodAutoscaler, and the settings of its controller."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from shoal.api.conditions import Condition
from shoal.api.selectors import LabelSelector
from shoal.api.wire import ApiStruct, Timestamp
from shoal.units.quantity import Quantity


class ScaleTargetRef(ApiStruct, frozen=True):
    """An object by kind and name: the target of an autoscaler, or the object that a metric describes."""

    kind: str = ""
    name: str = ""
    api_version: str = ""


class MetricTarget(ApiStruct, frozen=True):
    type: str = ""
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: int | None = None


class MetricIdentifier(ApiStruct, frozen=True):
    name: str = ""
    selector: LabelSelector | None = None


class ResourceSource(ApiStruct, frozen=True):
    """Of `Resource` and of `ContainerResource`, which names a container too."""

    name: str = ""
    container: str = ""
    target: MetricTarget = MetricTarget()


class CustomSource(ApiStruct, frozen=True):
    """Of `Pods`, of `External`, and of `Object`, which names the described object too."""

    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()
    described_object: ScaleTargetRef = ScaleTargetRef()


class MetricSpec(ApiStruct, frozen=True):
    type: str = ""
    resource: ResourceSource | None = None
    container_resource: ResourceSource | None = None
    pods: CustomSource | None = None
    object: CustomSource | None = None
    external: CustomSource | None = None


class ScalingPolicy(ApiStruct, frozen=True):
    type: str
    value: int
    period_seconds: int


class ScalingRules(ApiStruct, frozen=True):
    """Of one direction. `None` instead of a number of seconds or a choice: the default."""

    stabilization_window_seconds: int | None = None
    select_policy: str | None = None
    policies: tuple[ScalingPolicy, ...] = ()
    tolerance: Quantity | None = None


class Behavior(ApiStruct, frozen=True):
    scale_up: ScalingRules | None = None
    scale_down: ScalingRules | None = None


class AutoscalerSpec(ApiStruct, frozen=True):
    scale_target_ref: ScaleTargetRef = ScaleTargetRef()
    min_replicas: int | None = None
    max_replicas: int = 0
    metrics: tuple[MetricSpec, ...] = ()
    behavior: Behavior | None = None


class AutoscalerStatus(ApiStruct, frozen=True):
    current_replicas: int = 0
    desired_replicas: int = 0
    last_scale_time: Timestamp | None = None
    current_metrics: tuple[dict[str, Any], ...] | None = None
    conditions: tuple[Condition, ...] = ()
    observed_generation: int | None = None


class Autoscaler(Struct, frozen=True):
    namespace: str
    name: str
    spec: AutoscalerSpec
    status: AutoscalerStatus = field(default_factory=AutoscalerStatus)


class AutoscalerSettings(Struct, frozen=True):
    """The flags of kube-controller-manager that concern autoscalers, and the feature gates."""

    tolerance: float = 0.1
    initial_readiness_delay_s: float = 30.0
    cpu_initialization_s: float = 300.0
    downscale_stabilization_s: float = 300.0
    growth_factor: float = 2.0
    """The largest growth in one step of an autoscaler without `behavior`; up to four replicas are always allowed."""
    has_own_tolerance: bool = True
    has_pod_level_resources: bool = True
    has_scale_to_zero: bool = False
