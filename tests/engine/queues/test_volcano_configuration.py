"""The scheduler's configuration: what is accepted, what is said about the rest, and what absent and off mean."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.engine.queues.disciplines.volcano.configuration import (
    DEFAULT,
    PluginOption,
    VolcanoConfiguration,
    read_configuration,
)
from shoal.engine.queues.disciplines.volcano.node_scores import binpack_score, node_order_weights, volcano_profile
from shoal.engine.scores.strategies import PerResource
from shoal.units.errors import UserError, Where

HERE = Where(obj="ConfigMap volcano-system/volcano-scheduler-configmap")
SHIPPED = {
    "actions": "enqueue, allocate, backfill",
    "tiers": [
        {
            "plugins": [
                {"name": "priority"},
                {"name": "gang", "enablePreemptable": False},
                {"name": "conformance"},
            ]
        },
        {
            "plugins": [
                {"name": "overcommit"},
                {"name": "drf", "enablePreemptable": False},
                {"name": "predicates"},
                {"name": "proportion"},
                {"name": "nodeorder"},
                {"name": "binpack"},
            ]
        },
    ],
}


def read(**changes: Any) -> VolcanoConfiguration:
    return read_configuration({**SHIPPED, **changes}, HERE)


def plugins(*entries: dict[str, Any]) -> VolcanoConfiguration:
    return read(tiers=[{"plugins": list(entries)}])


def test_the_configuration_that_volcano_ships_is_accepted_as_it_is() -> None:
    found = read()
    assert found.actions == ("enqueue", "allocate", "backfill")
    assert [[option.name for option in tier] for tier in found.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"],
    ]
    assert found.warnings == ()


def test_a_switch_that_is_absent_is_on_and_one_that_is_off_is_off() -> None:
    (gang, drf) = plugins({"name": "gang", "enablePreemptable": False}, {"name": "drf"}).plugins()
    assert not gang.has("Preemptable")
    assert gang.has("JobReady")
    assert drf.has("Preemptable")
    assert not drf.has("Hierarchy")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"actions": "enqueue, alocate"}, "alocate is not a known action and is left out; did you mean allocate?"),
        (
            {"tiers": [{"plugins": [{"name": "propotion"}, {"name": "gang"}]}]},
            "propotion is not a known plugin and is left out; did you mean proportion?",
        ),
        ({"configurations": [{"name": "alocate"}]}, "alocate is not a known action"),
        ({"tiers": [{"plugins": [{"name": "extender"}]}]}, "plugin extender has no effect"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest_and_the_others_still_run(changes: dict[str, Any], words: str) -> None:
    found = read(**changes)
    (warning,) = found.warnings
    assert words in warning.replace('"', "")
    assert found.actions[0] == "enqueue"


UNREAD = {
    "the weight of images": (
        {"name": "nodeorder", "arguments": {"imagelocality.weight": 3, "leastrequested.weight": 2}},
        "plugin nodeorder: argument imagelocality.weight is not read: which images a node has is not known",
    ),
    "a weight with a mistake in its name": (
        {"name": "nodeorder", "arguments": {"leastrequest.weight": 3}},
        "argument leastrequest.weight is not read; did you mean leastrequested.weight?",
    ),
    "network topologies": (
        {"name": "network-topology-aware", "arguments": {"weight": 3}},
        "plugin network-topology-aware: argument weight is not read: the nearest network domain",
    ),
    "a filter that is off": (
        {"name": "predicates", "arguments": {"predicate.NodeAffinityEnable": False, "predicate.NodePortsEnable": True}},
        "plugin predicates: argument predicate.NodeAffinityEnable has no effect: the filter always applies",
    ),
    "the cache of filters": (
        {"name": "predicates", "arguments": {"predicate.cache": 1}},
        "argument predicate.cache is not read",
    ),
    "a hierarchy of drf": (
        {"name": "drf", "enableHierarchy": True},
        "plugin drf: switch enableHierarchy has no effect: hierarchies are those of the plugin capacity",
    ),
    "namespaces of drf": (
        {"name": "drf", "enableNamespaceOrder": True},
        "plugin drf: switch enableNamespaceOrder is not read",
    ),
    "budgets of tdm": (
        {"name": "tdm", "arguments": {"tdm.evict.max-num": 3, "tdm.evict.period": "1m", "tdm.revocable-zone.a": "1-2"}},
        "plugin tdm: argument tdm.evict.max-num is not read: one pod of a job is evicted per period",
    ),
    "strategies of rescheduling": (
        {"name": "rescheduling", "arguments": {"interval": "5m"}},
        "plugin rescheduling: argument interval is not read: pods move only where a waiting job then fits",
    ),
    "scarce resources": (
        {"name": "resource-strategy-fit", "arguments": {"resources": {}, "sra.enable": True}},
        "argument sra.enable is not read",
    ),
    "use": (
        {"name": "usage", "arguments": {"thresholds": {"cpu": 80}}},
        "plugin usage has no effect: the measured load",
    ),
}


@pytest.mark.parametrize(("plugin", "words"), UNREAD.values(), ids=UNREAD)
def test_what_has_no_effect_is_told_by_name(plugin: dict[str, Any], words: str) -> None:
    (warning,) = plugins(plugin).warnings
    assert words in warning
    assert "tiers[0].plugins[0]" in warning


def test_arguments_of_actions_and_sections_that_are_not_read_are_told() -> None:
    arguments = {"enableTopologyAwarePreemption": True, "topologyAwarePreemptWorkerNum": 16}
    found = read(configurations=[{"name": "preempt", "arguments": arguments}], metrics={"type": "prometheus"})
    assert [warning.rpartition(": ")[2] for warning in found.warnings] == [
        "argument topologyAwarePreemptWorkerNum is not read",
        "metrics is not read",
    ]


READ = (
    {"name": "nodeorder", "arguments": {"LeastRequestedWeight": 1, "podaffinity.weight": 0}},
    {"name": "binpack", "arguments": {"binpack.weight": 1, "binpack.resources": "x", "binpack.resources.x": 2}},
    {"name": "capacity", "enableHierarchy": True, "arguments": {"ancestorReclaimLevel": 1}},
    {"name": "sla", "arguments": {"sla-waiting-time": "1h"}},
    {"name": "overcommit", "arguments": {"overcommit-factor": 1.2}},
    {"name": "gang", "enabledOverused": False, "enablePreemptable": False},
)


@pytest.mark.parametrize("plugin", READ, ids=lambda plugin: plugin["name"])
def test_what_has_an_effect_is_not_told(plugin: dict[str, Any]) -> None:
    assert plugins(plugin).warnings == ()


def test_of_plugins_with_a_mistake_in_the_name_the_others_are_kept() -> None:
    assert [option.name for option in plugins({"name": "gagn"}, {"name": "drf"}).plugins()] == ["drf"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("actions: enqueue", "a mapping is expected, not str"),
        ({"actions": ["enqueue"]}, "a list of names with commas is expected, not list"),
        ({"tiers": {"plugins": []}}, "a list is expected, not dict"),
        ({"tiers": ["gang"]}, "a mapping is expected, not str"),
        ({"tiers": [{"plugins": [{"name": "gang", "enableJobReady": "no"}]}]}, "true or false is expected"),
        ({"tiers": [{"plugins": [{"name": "gang", "arguments": 7}]}]}, "a mapping is expected, not int"),
    ],
)
def test_a_document_of_the_wrong_structure_is_refused_with_the_place(document: Any, words: str) -> None:
    with pytest.raises(UserError) as caught:
        read_configuration(document, HERE)
    assert words in str(caught.value)
    assert "volcano-scheduler-configmap" in str(caught.value)


def test_a_weight_of_zero_is_an_answer_and_an_absent_one_has_its_default() -> None:
    option = PluginOption("nodeorder", arguments={"leastrequested.weight": 0, "NodeAffinityWeight": "7", "x": "y"})
    weights = node_order_weights(option)
    assert (weights["leastrequested"], weights["nodeaffinity"], weights["tainttoleration"]) == (0, 7, 3)
    assert (weights["podaffinity"], weights["podtopologyspread"]) == (2, 2)


def test_a_weight_that_is_no_number_counts_as_absent() -> None:
    assert node_order_weights(PluginOption("nodeorder", arguments={"nodeaffinity.weight": "much"}))["nodeaffinity"] == 2


@pytest.mark.parametrize(
    ("arguments", "weights"),
    [
        ({"binpack.resources": "example.com/a, example.com/b", "binpack.resources.example.com/b": 3}, {"a": 1, "b": 3}),
        ({"binpack.resources.example.com/a": 3}, {}),
        ({"binpack.resources": "example.com/a", "binpack.resources.example.com/a": -1, "binpack.cpu": -1}, {"a": 1}),
    ],
    ids=["listed without a weight", "a weight of what is not listed", "negative weights"],
)
def test_binpack_weighs_the_resources_that_are_listed(arguments: dict[str, Any], weights: dict[str, int]) -> None:
    found = dict(binpack_score(arguments).weights)
    assert found == {"cpu": 1, "memory": 1} | {f"example.com/{name}": weight for name, weight in weights.items()}


@pytest.mark.parametrize(
    ("arguments", "weight", "resources"),
    [({}, 10, ["cpu", "memory"]), ({"resourceStrategyFitWeight": 0}, None, []), ({"resources": {"x": {}}}, 10, ["x"])],
    ids=["nothing set", "a weight of 0", "a resource"],
)
def test_strategies_of_resources_have_volcanos_defaults(
    arguments: dict[str, Any], weight: int | None, resources: list[str]
) -> None:
    made = volcano_profile(plugins({"name": "resource-strategy-fit", "arguments": arguments}))
    found = [(score.strategies, weight) for score, weight in made.node_scores if isinstance(score, PerResource)]
    assert [([name for name, _, _ in strategies], weight) for strategies, weight in found] == (
        [] if weight is None else [(resources, weight)]
    )


def test_a_plugin_whose_scores_are_off_does_not_score() -> None:
    made = volcano_profile(plugins({"name": "nodeorder", "enableNodeOrder": False}))
    assert (made.static_scores, made.node_scores, made.soft.affinity) == ((), (), 0)


def test_preferences_about_pods_weigh_as_the_other_weights_do() -> None:
    made = volcano_profile(plugins({"name": "nodeorder", "arguments": {"podaffinity.weight": 0}}))
    (affinity, *_) = made.static_scores
    assert (made.soft.affinity, made.soft.spread) == (0, affinity[1])


def test_without_a_configuration_preemption_and_reclaim_are_on() -> None:
    assert {"preempt", "reclaim"} < set(DEFAULT.actions)
    assert read_configuration({}, HERE).actions == ()
