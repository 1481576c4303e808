"""SchedulingShards: which settings they give, and what is said of wrong values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.groups.kai import NODE_POOL_LABEL
from shoal.engine.queues.disciplines.kai.config_object import KaiConfig
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareSettings
from shoal.engine.queues.disciplines.kai.fairshare import DEFAULT_ACTIONS
from shoal.engine.queues.disciplines.kai.node_preferences import profile_of
from shoal.engine.queues.disciplines.kai.shard_objects import SchedulingShard
from shoal.engine.queues.disciplines.kai.shards import WHOLE_CLUSTER, Shard, Shards, shards_of
from shoal.engine.queues.disciplines.kai.usage_record import UsageWindow
from shoal.engine.queues.disciplines.kai.usage_source import ALLOCATED, CAPACITY, UsageSource


def read(**spec: Any) -> Shards:
    return shards_of([msgspec.convert({"metadata": {"name": "s"}, "spec": spec}, SchedulingShard)])


def only(**spec: Any) -> Shard:
    found = read(**spec)
    assert found.warnings == ()
    return found.each[0]


def test_without_a_shard_the_cluster_is_one() -> None:
    found = shards_of([])
    assert (found.each, found.pools) == ((WHOLE_CLUSTER,), None)


def test_a_shard_without_settings_has_those_of_kai_over_the_nodes_without_the_label() -> None:
    shard = only()
    assert (shard.settings, shard.actions, shard.usage) == (FairshareSettings(), DEFAULT_ACTIONS, None)
    assert shard.pool is not None
    assert (shard.pool.requirement.key, shard.pool.requirement.operator) == ("kai.scheduler/node-pool", "DoesNotExist")


SETTINGS: dict[str, tuple[dict[str, Any], FairshareSettings]] = {
    "k": ({"kValue": 0.5}, FairshareSettings(k=0.5)),
    "an argument of the plugin comes before kValue": (
        {"kValue": 0.5, "plugins": {"proportion": {"arguments": {"kValue": "2.0"}}}},
        FairshareSettings(k=2.0),
    ),
    "multiplier": (
        {"plugins": {"proportion": {"arguments": {"reclaimerUtilizationMultiplier": "1.2"}}}},
        FairshareSettings(reclaim_multiplier=1.2),
    ),
    "depths": ({"queueDepthPerAction": {"reclaim": 8, "preempt": 0}}, FairshareSettings(depths={"reclaim": 8})),
    "minimum runtimes": (
        {"minRuntime": {"preemptMinRuntime": "10m", "reclaimMinRuntime": "1d"}},
        FairshareSettings(preempt_min_runtime_s=600, reclaim_min_runtime_s=86_400),
    ),
    "minimum runtimes of the plugin": (
        {"plugins": {"minruntime": {"arguments": {"defaultReclaimMinRuntime": "5s", "reclaimResolveMethod": "queue"}}}},
        FairshareSettings(reclaim_min_runtime_s=5, reclaim_min_runtime_of_victim=True),
    ),
    "no minimum runtimes": ({"plugins": {"minruntime": {"enabled": False}}}, FairshareSettings(has_min_runtimes=False)),
    "flags": (
        {"args": {"default-staleness-grace-period": "-1s", "max-consolidation-preemptees": "8", "v": "3"}},
        FairshareSettings(stale_grace_s=-1, most_movers=8),
    ),
}


@pytest.mark.parametrize(("spec", "settings"), SETTINGS.values(), ids=SETTINGS)
def test_settings(spec: dict[str, Any], settings: FairshareSettings) -> None:
    assert only(**spec).settings == settings


ACTIONS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "one is off": (
        {"actions": {"preempt": {"enabled": False}}},
        ("allocate", "consolidation", "reclaim", "stalegangeviction"),
    ),
    "one comes earlier": (
        {"actions": {"preempt": {"priority": 450}}},
        ("allocate", "preempt", "consolidation", "reclaim", "stalegangeviction"),
    ),
    "a spread turns consolidation off": (
        {"placementStrategy": {"gpu": "spread"}},
        ("allocate", "reclaim", "preempt", "stalegangeviction"),
    ),
    "unless it is turned on": (
        {"placementStrategy": {"cpu": "spread"}, "actions": {"consolidation": {"enabled": True}}},
        DEFAULT_ACTIONS,
    ),
}


@pytest.mark.parametrize(("spec", "actions"), ACTIONS.values(), ids=ACTIONS)
def test_actions(spec: dict[str, Any], actions: tuple[str, ...]) -> None:
    assert only(**spec).actions == actions


PREFERENCES: dict[str, tuple[dict[str, Any], str]] = {
    "none": ({}, ""),
    "spread": (
        {"placementStrategy": {"gpu": "spread", "cpu": "spread"}},
        "KAI gpu=spread cpu=spread shares=spread",
    ),
    "nodes spread, shares packed": (
        {
            "placementStrategy": {"gpu": "spread"},
            "plugins": {"gpuspread": {"enabled": False}, "gpupack": {"enabled": True}},
        },
        "KAI gpu=spread cpu=binpack shares=binpack",
    ),
    "arguments of the plugin": (
        {"plugins": {"nodeplacement": {"arguments": {"cpu": "spread"}}}},
        "KAI gpu=binpack cpu=spread shares=binpack",
    ),
}


@pytest.mark.parametrize(("spec", "name"), PREFERENCES.values(), ids=PREFERENCES)
def test_node_preferences(spec: dict[str, Any], name: str) -> None:
    assert only(**spec).preferences == name
    assert profile_of(name).name == "KAI"


def test_the_window_of_use() -> None:
    def window(**params: Any) -> UsageWindow | None:
        return only(usageDBConfig={"clientType": "prometheus", "usageParams": params}).usage

    assert window() == UsageWindow()
    assert window(windowSize="2w", halfLifePeriod="10m") == UsageWindow(size_s=14 * 86_400, half_life_s=600)
    start = "2026-01-05T00:00:00Z"
    assert window(windowType="tumbling", tumblingWindowStartTime=start) == UsageWindow(
        "tumbling", first_s=1_767_571_200.0
    )
    cron = window(windowType="cron", cronString="0 0 * * 1")
    assert cron is not None
    assert (cron.kind, cron.schedule is None) == ("cron", False)


WARNINGS: dict[str, tuple[dict[str, Any], str]] = {
    "an action": (
        {"actions": {"reclaims": {}}},
        "spec.actions.reclaims: there is no action of that name; did you mean",
    ),
    "a depth": ({"queueDepthPerAction": {"realloc": 3}}, "spec.queueDepthPerAction.realloc: there is no action"),
    "a plugin": ({"plugins": {"gpupak": {}}}, "there is no plugin of that name; did you mean gpupack?"),
    "a plugin that cannot be off": ({"plugins": {"topology": {"enabled": False}}}, "cannot be turned off here"),
    "a strategy": (
        {"placementStrategy": {"gpu": "binpak"}},
        "'binpak' is none of binpack, spread; did you mean binpack",
    ),
    "a time": ({"minRuntime": {"preemptMinRuntime": "10 minutes"}}, "'10 minutes' is not a length of time; write e.g."),
    "a number": ({"plugins": {"proportion": {"arguments": {"kValue": "nan"}}}}, "'nan' is not a number"),
    "a window": (
        {"usageDBConfig": {"clientType": "prometheus", "usageParams": {"windowType": "slidng"}}},
        "'slidng' is none of sliding, tumbling, cron; did you mean sliding?",
    ),
    "a schedule that is missing": (
        {"usageDBConfig": {"clientType": "prometheus", "usageParams": {"windowType": "cron"}}},
        "a window of the type cron needs one: the window is sliding",
    ),
    "a moment": (
        {"usageDBConfig": {"clientType": "x", "usageParams": {"tumblingWindowStartTime": "monday"}}},
        "'monday' is not a moment; write e.g. 2026-01-05T00:00:00Z",
    ),
    "a moment before the calendar": (
        {"usageDBConfig": {"clientType": "x", "usageParams": {"tumblingWindowStartTime": "0001-01-01T00:00:00+14:00"}}},
        "'0001-01-01T00:00:00+14:00' is not a moment",
    ),
}


@pytest.mark.parametrize(("spec", "words"), WARNINGS.values(), ids=WARNINGS)
def test_a_wrong_value_is_named_and_the_rest_has_its_effect(spec: dict[str, Any], words: str) -> None:
    found = read(partitionLabelValue="big", **spec)
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith("SchedulingShard s: spec.")
    assert words in found.warnings[0]
    assert found.pools is not None
    assert [*found.pools.profiles] == ["big"]


def test_of_two_shards_with_one_pool_the_first_by_name_decides() -> None:
    objects = [
        msgspec.convert({"metadata": {"name": name}, "spec": {"kValue": k}}, SchedulingShard)
        for name, k in (("b", 2.0), ("a", 3.0))
    ]
    found = shards_of(objects)
    assert [(each.name, each.settings.k) for each in found.each] == [("a", 3.0)]
    assert found.warnings == (
        "SchedulingShard b: spec.partitionLabelValue: '' is the node pool of a, which decides about it",
    )


@pytest.mark.parametrize(
    ("spec", "label", "warnings"),
    [
        ({}, NODE_POOL_LABEL, 0),
        ({"global": {"schedulerName": "x"}}, NODE_POOL_LABEL, 0),
        ({"global": {"nodePoolLabelKey": ""}}, NODE_POOL_LABEL, 0),
        ({"global": {"nodePoolLabelKey": "example.com/pool"}}, "example.com/pool", 0),
        ({"global": {"nodePoolLabelKey": "no label/"}}, NODE_POOL_LABEL, 1),
    ],
)
def test_the_config_names_the_label_of_node_pools(spec: dict[str, Any], label: str, warnings: int) -> None:
    found = msgspec.convert({"metadata": {"name": "kai-config"}, "spec": spec}, KaiConfig)
    assert (found.pool_label, len(found.warnings)) == (label, warnings)


_SERVER = "http://prometheus.monitoring:9090"


def test_the_server_that_knows_what_queues_used_is_read_with_its_metrics() -> None:
    params = {
        "stalenessPeriod": "10m",
        "extraParams": {"gpuAllocationMetric": "mine", "memoryCapacityMetric": "sum(all)", "queryResolution": "5m"},
    }
    config = {"clientType": "prometheus", "connectionString": _SERVER, "usageParams": params}
    assert only(usageDBConfig=config).source == UsageSource(
        _SERVER, ("mine", *ALLOCATED[1:]), (*CAPACITY[:2], "sum(all)"), 300, 600.0
    )
    assert only(usageDBConfig={"clientType": "prometheus"}).source is None


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"connectionString": "prometheus:9090"}, "connectionString: is not an HTTP address"),
        ({"connectionString": "http://me:secret@p"}, "connectionString: contains credentials"),
        ({"connectionString": _SERVER, "clientType": "promtheus"}, "did you mean"),
        ({"connectionString": _SERVER, "usageParams": {"windowType": "tumbling"}}, "tumblingWindowStartTime"),
    ],
)
def test_a_server_that_cannot_be_asked_is_told_and_the_use_is_measured(config: dict[str, Any], words: str) -> None:
    found = read(usageDBConfig={"clientType": "prometheus", **config})
    (warning,) = found.warnings
    assert words in warning
    assert "secret" not in warning
    assert (found.each[0].source, found.each[0].usage is None) == (None, False)
