from __future__ import annotations

import copy
from typing import Any

import pytest

from build.kind_objects import complaints, created, texts
from shoal.embedded.apiserver.kinds.table import STRATEGIES

Obj = dict[str, Any]


def quota(**spec: Any) -> list[str]:
    return complaints("", "resourcequotas", {"metadata": {"name": "q", "namespace": "default"}, "spec": spec})


def test_a_quota_of_a_priority_counts_only_what_has_a_priority() -> None:
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}
    assert quota(hard={"pods": "4", "requests.nvidia.com/gpu": "8"}, scopeSelector=selector) == []
    assert quota(hard={"persistentvolumeclaims": "4"}, scopeSelector=selector) == [
        (
            "spec.scopeSelector.matchExpressions: Invalid value: "
            '{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["high"]}]}: '
            "unsupported scope applied to resource"
        )
    ]


def test_limits_of_extended_resources_pass_though_nothing_is_counted_against_them() -> None:
    assert quota(hard={"limits.nvidia.com/gpu": "8"}) == []


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"hard": {"pods": "1.5"}}, 'spec.hard[pods]: Invalid value: "1500m": must be an integer'),
        ({"hard": {"secrets": "1500m"}}, 'spec.hard[secrets]: Invalid value: "1500m": must be an integer'),
        ({"hard": {"cpu": "-1"}}, 'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0'),
        ({"hard": {"gpus": "1"}},
         'spec.hard[gpus]: Invalid value: "gpus": must be a standard resource type or fully qualified'),
        ({"scopes": ["Nobody"]}, 'spec.scopes: Invalid value: ["Nobody"]: unsupported scope'),
        ({"scopes": ["BestEffort", "NotBestEffort"]},
         'spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes'),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}},
         ("spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is "
         "'In' or 'NotIn' for scope selector")),
    ],
)  # fmt: skip
def test_quotas_are_refused_in_the_words_clients_know(spec: Obj, said: str) -> None:
    written = copy.deepcopy(spec)
    if written.get("hard") == {"pods": "1.5"}:
        written["hard"] = {"pods": "1500m"}
    assert said in quota(**written)


def test_the_scopes_of_a_quota_are_said_once() -> None:
    old = created("", "resourcequotas", {"metadata": {"name": "q"}, "spec": {"scopes": ["BestEffort"]}})
    new = old | {"spec": {}}
    assert texts(STRATEGIES["", "resourcequotas"].validate_update(new, old)) == [
        "spec.scopes: Invalid value: []: field is immutable"
    ]


def limits(**item: Any) -> Obj:
    return {"metadata": {"name": "l", "namespace": "default"}, "spec": {"limits": [{"type": "Container", **item}]}}


def test_bounds_of_containers_are_defaults_where_none_is_given() -> None:
    made = created("", "limitranges", limits(max={"cpu": "2"}, min={"cpu": "1", "memory": "1Gi"}))
    (item,) = made["spec"]["limits"]
    assert item["default"] == {"cpu": "2"}
    assert item["defaultRequest"] == {"cpu": "2", "memory": "1Gi"}
    again = copy.deepcopy(made)
    STRATEGIES["", "limitranges"].default(again)
    assert again == made


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"min": {"cpu": "2"}, "max": {"cpu": "1"}, "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}},
         'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1'),
        ({"default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}},
         ('spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than default '
         "limit value 1")),
        ({"default": {"nvidia.com/gpu": "2"}, "defaultRequest": {"nvidia.com/gpu": "1"}},
         ('spec.limits[0].defaultRequest[nvidia.com/gpu]: Invalid value: "1": default value 2 must equal to '
         "defaultRequest value 1 in nvidia.com/gpu")),
        ({"maxLimitRequestRatio": {"cpu": "500m"}},
         'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'),
        ({"type": "Pod", "default": {"cpu": "1"}},
         "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"),
        ({"type": "Nothing"},
         'spec.limits[0].type: Invalid value: "Nothing": must be a standard limit type or fully qualified'),
    ],
)  # fmt: skip
def test_bounds_that_cannot_hold_are_refused(item: Obj, said: str) -> None:
    assert said in complaints("", "limitranges", limits(**item))


def priority(name: str = "high", **fields: Any) -> list[str]:
    return complaints("scheduling.k8s.io", "priorityclasses", {"metadata": {"name": name}, **fields})


def test_priorities_above_a_billion_are_the_systems_own() -> None:
    assert priority(value=1_000_000_000) == []
    assert priority(value=1_000_000_001) == [
        "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"
    ]
    assert priority("system-mine", value=1) == [
        (
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. "
            "error: system-mine is not a known system priority class"
        )
    ]


def test_the_value_of_a_priority_class_is_said_once() -> None:
    strategy = STRATEGIES["scheduling.k8s.io", "priorityclasses"]
    old = created("scheduling.k8s.io", "priorityclasses", {"metadata": {"name": "high"}, "value": 1})
    assert texts(strategy.validate_update(old | {"value": 2}, old)) == [
        "value: Forbidden: may not be changed in an update."
    ]
    assert not strategy.generation_changed(old | {"description": "x"}, old)
