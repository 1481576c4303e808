"""Defines KAI's SchedulingShard as the rules read it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import field

from shoal.api.meta import ObjectMeta


class PlacementStrategy(msgspec.Struct, frozen=True):
    gpu: str = ""
    cpu: str = ""


class ShardMinRuntime(msgspec.Struct, rename="camel", frozen=True):
    preempt_min_runtime: str = ""
    reclaim_min_runtime: str = ""


class ShardAction(msgspec.Struct, frozen=True):
    enabled: bool | None = None
    priority: int | None = None


class ShardPlugin(msgspec.Struct, frozen=True):
    enabled: bool | None = None
    priority: int | None = None
    arguments: Mapping[str, str] | None = None
    """None: those that the plugin has by default."""


class UsageParams(msgspec.Struct, rename="camel", frozen=True):
    half_life_period: str = ""
    window_size: str = ""
    window_type: str = ""
    tumbling_window_start_time: str = ""
    cron_string: str = ""
    fetch_interval: str = ""
    staleness_period: str = ""
    extra_params: Mapping[str, str] = {}


class UsageDbConfig(msgspec.Struct, rename="camel", frozen=True):
    client_type: str = ""
    connection_string: str = ""
    usage_params: UsageParams | None = None


class SchedulingShardSpec(msgspec.Struct, rename="camel", frozen=True):
    partition_label_value: str = ""
    args: Mapping[str, str] = {}
    placement_strategy: PlacementStrategy | None = None
    queue_depth_per_action: Mapping[str, int] = {}
    min_runtime: ShardMinRuntime | None = None
    k_value: float | None = None
    usage_db_config: UsageDbConfig | None = field(default=None, name="usageDBConfig")
    plugins: Mapping[str, ShardPlugin] = {}
    actions: Mapping[str, ShardAction] = {}


class SchedulingShard(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: SchedulingShardSpec = field(default_factory=SchedulingShardSpec)

    @property
    def name(self) -> str:
        return self.metadata.name
