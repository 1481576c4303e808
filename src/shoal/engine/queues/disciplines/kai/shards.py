"""Reads SchedulingShards: the node pool in which each decides, and by which settings.

A wrong value is named in a warning and counts as not set, as does the name of an action or plugin that does not exist;
everything else of the shard has its effect. Of two shards with the same pool the first by name decides.

Guarantees: without a SchedulingShard there is one shard over the whole cluster, with KAI's defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from shoal.api.groups.kai import NODE_POOL_LABEL
from shoal.engine.queues.disciplines.kai.fair_actions import ALLOCATE, CONSOLIDATION, PREEMPT, RECLAIM, STALE
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareSettings
from shoal.engine.queues.disciplines.kai.fairshare import DEFAULT_ACTIONS
from shoal.engine.queues.disciplines.kai.node_pools import NodePool, NodePools
from shoal.engine.queues.disciplines.kai.node_preferences import preferences_name
from shoal.engine.queues.disciplines.kai.objects import RESOURCES
from shoal.engine.queues.disciplines.kai.shard_objects import SchedulingShard, ShardAction, ShardPlugin, UsageParams
from shoal.engine.queues.disciplines.kai.shard_values import ShardValues
from shoal.engine.queues.disciplines.kai.usage_record import CRON, SLIDING, TUMBLING, WEEK_S, UsageWindow
from shoal.engine.queues.disciplines.kai.usage_source import ALLOCATED, CAPACITY, UsageSource, address_fault
from shoal.units.near_texts import meant_words

_ACTIONS: Mapping[str, int] = {ALLOCATE: 500, CONSOLIDATION: 400, RECLAIM: 300, PREEMPT: 200, STALE: 100}
"""The order of the actions: higher numbers run first."""
_PROPORTION, _MIN_RUNTIME, _PLACEMENT, _PACK, _SPREAD = (
    "proportion",
    "minruntime",
    "nodeplacement",
    "gpupack",
    "gpuspread",
)
_READ = (_PROPORTION, _MIN_RUNTIME, _PLACEMENT, _PACK, _SPREAD)
"""The plugins whose switches or arguments have an effect."""
_ALWAYS_ON = (
    *("predicates", "priority", "nodeavailability", "resourcetype", "podaffinity", "elastic", "kubeflow", "ray"),
    *("subgrouporder", "taskorder", "nominatednode", "dynamicresources", "topology", "snapshot", "gpusharingorder"),
)
_STALE_GRACE, _MOST_MOVERS = "default-staleness-grace-period", "max-consolidation-preemptees"
_EVERY_S = 60.0
_STALE_S = 300.0
_PROMETHEUS = "prometheus"


class Shard(msgspec.Struct, frozen=True):
    """A part of a cluster and how it is decided."""

    name: str = ""
    """Empty where no SchedulingShard exists."""
    pool: NodePool | None = None
    """None: the whole cluster."""
    settings: FairshareSettings = FairshareSettings()
    actions: tuple[str, ...] = DEFAULT_ACTIONS
    preferences: str = ""
    """The profile of node preferences; empty: KAI's default one."""
    usage: UsageWindow | None = None
    """None: fair shares do not depend on time."""
    measures_every_s: float = _EVERY_S
    source: UsageSource | None = None
    """The server that knows what queues used; None: only what is measured here counts."""


WHOLE_CLUSTER = Shard()


class Shards(msgspec.Struct, frozen=True):
    each: tuple[Shard, ...] = (WHOLE_CLUSTER,)
    warnings: tuple[str, ...] = ()
    label: str = NODE_POOL_LABEL
    """The label that names the node pool."""

    @property
    def pools(self) -> NodePools | None:
        """None where the cluster is not divided."""
        profiles = {shard.pool.value: shard.preferences for shard in self.each if shard.pool is not None}
        return NodePools(profiles, self.label) if profiles else None


def shards_of(objects: Iterable[SchedulingShard], label: str = NODE_POOL_LABEL) -> Shards:
    """`label`: the one that names the node pool."""
    found: dict[str, Shard] = {}
    warnings: list[str] = []
    for each in sorted(objects, key=lambda shard: shard.name):
        values = ShardValues(each.name, warnings)
        pool = each.spec.partition_label_value
        if pool in found:
            other = found[pool].name
            values.warn("partitionLabelValue", f"{pool!r} is the node pool of {other}, which decides about it")
            continue
        found[pool] = _shard(each, values, label)
    return Shards(tuple(found.values()) or Shards().each, tuple(warnings), label)


def _shard(shard: SchedulingShard, values: ShardValues, label: str) -> Shard:
    spec = shard.spec
    plugins = _plugins(spec.plugins, values)
    strategy = spec.placement_strategy
    gpu = values.chosen("placementStrategy.gpu", "" if strategy is None else strategy.gpu, ("binpack", "spread"))
    cpu = values.chosen("placementStrategy.cpu", "" if strategy is None else strategy.cpu, ("binpack", "spread"))
    is_spread = "spread" in (gpu, cpu)
    placement = dict(plugins[_PLACEMENT].arguments or {})
    node_gpu = values.chosen("plugins.nodeplacement.arguments.gpu", placement.get("gpu", gpu), ("binpack", "spread"))
    node_cpu = values.chosen("plugins.nodeplacement.arguments.cpu", placement.get("cpu", cpu), ("binpack", "spread"))
    preferences = ""
    is_chosen = strategy is not None or placement or _is_set(plugins[_PACK]) or _is_set(plugins[_SPREAD])
    if is_chosen:
        shares_spread = plugins[_SPREAD].enabled is True or (gpu == "spread" and plugins[_SPREAD].enabled is not False)
        preferences = preferences_name(
            gpu_spread=node_gpu == "spread", cpu_spread=node_cpu == "spread", shares_spread=shares_spread
        )
    every_s = _measures_every_s(shard, values)
    return Shard(
        shard.name,
        NodePool(spec.partition_label_value, label),
        _settings(shard, plugins, values),
        _actions(spec.actions, is_spread=is_spread, values=values),
        preferences,
        _usage(shard, values),
        every_s,
        _source(shard, values, every_s),
    )


def _is_set(plugin: ShardPlugin) -> bool:
    return plugin.enabled is not None


def _plugins(given: Mapping[str, ShardPlugin], values: ShardValues) -> dict[str, ShardPlugin]:
    known = (*_READ, *_ALWAYS_ON)
    for name, plugin in given.items():
        if name not in known:
            values.warn(f"plugins.{name}", f"there is no plugin of that name{meant_words(name, known)}")
        elif plugin.enabled is False and name not in (_MIN_RUNTIME, _PACK, _SPREAD, _PLACEMENT):
            values.warn(f"plugins.{name}.enabled", "the plugin cannot be turned off here")
    return {name: given.get(name, ShardPlugin()) for name in _READ}


def _settings(shard: SchedulingShard, plugins: Mapping[str, ShardPlugin], values: ShardValues) -> FairshareSettings:
    spec, proportion = shard.spec, plugins[_PROPORTION].arguments or {}
    times, runtimes = spec.min_runtime, plugins[_MIN_RUNTIME].arguments or {}
    where = "plugins.minruntime.arguments"
    preempt = runtimes.get("defaultPreemptMinRuntime") or (times.preempt_min_runtime if times is not None else "")
    reclaim = runtimes.get("defaultReclaimMinRuntime") or (times.reclaim_min_runtime if times is not None else "")
    method = values.chosen(f"{where}.reclaimResolveMethod", runtimes.get("reclaimResolveMethod", ""), ("lca", "queue"))
    k = 1.0 if spec.k_value is None else spec.k_value
    return FairshareSettings(
        k=values.number("plugins.proportion.arguments.kValue", proportion.get("kValue", ""), k),
        stale_grace_s=values.seconds(f"args.{_STALE_GRACE}", spec.args.get(_STALE_GRACE, ""), 60.0),
        most_movers=round(values.number(f"args.{_MOST_MOVERS}", spec.args.get(_MOST_MOVERS, ""), 16.0)),
        reclaim_multiplier=values.number(
            "plugins.proportion.arguments.reclaimerUtilizationMultiplier",
            proportion.get("reclaimerUtilizationMultiplier", ""),
            1.0,
        ),
        reclaim_min_runtime_of_victim=method == "queue",
        depths=dict(_depths(spec.queue_depth_per_action, values)),
        preempt_min_runtime_s=max(0.0, values.seconds("minRuntime.preemptMinRuntime", preempt, 0.0)),
        reclaim_min_runtime_s=max(0.0, values.seconds("minRuntime.reclaimMinRuntime", reclaim, 0.0)),
        has_min_runtimes=plugins[_MIN_RUNTIME].enabled is not False,
    )


def _depths(given: Mapping[str, int], values: ShardValues) -> Iterator[tuple[str, int]]:
    for name, depth in sorted(given.items()):
        if name not in _ACTIONS:
            words = f"there is no action of that name{meant_words(name, _ACTIONS)}"
            values.warn(f"queueDepthPerAction.{name}", words)
        elif depth > 0:
            yield name, depth


def _actions(given: Mapping[str, ShardAction], *, is_spread: bool, values: ShardValues) -> tuple[str, ...]:
    """Moves would undo a spread, so consolidation is off with one unless it is turned on."""
    priorities = dict(_ACTIONS)
    chosen = {name for name in _ACTIONS if not (is_spread and name == CONSOLIDATION)}
    for name, action in given.items():
        if name not in _ACTIONS:
            values.warn(f"actions.{name}", f"there is no action of that name{meant_words(name, _ACTIONS)}")
            continue
        if action.priority is not None:
            priorities[name] = action.priority
        if action.enabled is not None:
            chosen = chosen | {name} if action.enabled else chosen - {name}
    return tuple(sorted(chosen, key=lambda name: (-priorities[name], -_ACTIONS[name])))


def _usage(shard: SchedulingShard, values: ShardValues) -> UsageWindow | None:
    config = shard.spec.usage_db_config
    if config is None:
        return None
    where, params = "usageDBConfig.usageParams", config.usage_params
    if params is None:
        return UsageWindow()
    kind = values.chosen(f"{where}.windowType", params.window_type, (SLIDING, TUMBLING, CRON)) or SLIDING
    size_s = values.seconds(f"{where}.windowSize", params.window_size, WEEK_S)
    schedule = values.schedule(f"{where}.cronString", params.cron_string) if kind == CRON else None
    if kind == CRON and schedule is None:
        values.warn(f"{where}.cronString", "a window of the type cron needs one: the window is sliding")
        kind = SLIDING
    return UsageWindow(
        kind,
        size_s if size_s > 0 else WEEK_S,
        max(0.0, values.seconds(f"{where}.halfLifePeriod", params.half_life_period, 0.0)),
        values.moment_s(f"{where}.tumblingWindowStartTime", params.tumbling_window_start_time),
        schedule,
    )


def _source(shard: SchedulingShard, values: ShardValues, every_s: float) -> UsageSource | None:
    """Where the shard names a server. Without one KAI's operator runs one, and Shoal measures."""
    config = shard.spec.usage_db_config
    if config is None or not config.connection_string:
        return None
    where, params = "usageDBConfig.usageParams", config.usage_params or UsageParams()
    if not values.chosen("usageDBConfig.clientType", config.client_type, (_PROMETHEUS,)):
        return None
    if fault := address_fault(config.connection_string):
        values.warn("usageDBConfig.connectionString", f"{fault}: the use is measured here")
        return None
    if params.window_type == TUMBLING and not params.tumbling_window_start_time:
        words = "a server is asked about windows of the type tumbling only with one: the use is measured here"
        values.warn(f"{where}.tumblingWindowStartTime", words)
        return None
    extra = params.extra_params
    resolution_s = values.seconds(f"{where}.extraParams.queryResolution", extra.get("queryResolution", ""), _EVERY_S)
    return UsageSource(
        config.connection_string,
        tuple(extra.get(f"{name}AllocationMetric") or text for name, text in zip(RESOURCES, ALLOCATED, strict=True)),
        tuple(extra.get(f"{name}CapacityMetric") or text for name, text in zip(RESOURCES, CAPACITY, strict=True)),
        round(resolution_s) if resolution_s >= 1 else round(_EVERY_S),
        max(every_s, values.seconds(f"{where}.stalenessPeriod", params.staleness_period, _STALE_S)),
    )


def _measures_every_s(shard: SchedulingShard, values: ShardValues) -> float:
    config = shard.spec.usage_db_config
    params = config.usage_params if config is not None else None
    text = params.fetch_interval if params is not None else ""
    every_s = values.seconds("usageDBConfig.usageParams.fetchInterval", text, _EVERY_S)
    return every_s if every_s >= 1 else _EVERY_S
