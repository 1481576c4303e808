"""NodePools of all versions that are in use are read alike."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.autoscale.nodes.pool_reading import pool_of
from shoal.units.errors import UserError


def _pool(spec: dict[str, Any], version: str = "karpenter.sh/v1", kind: str = "NodePool") -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "gpu"}, "spec": spec}


def _required(**requirement: Any) -> dict[str, Any]:
    return {"template": {"spec": {"requirements": [{"key": "a", **requirement}]}}}


def test_absent_fields_have_the_defaults_of_the_api() -> None:
    pool = pool_of(_pool({"template": {"spec": {}}}))

    assert pool.disruption.policy == "WhenEmptyOrUnderutilized"
    assert pool.disruption.consolidate_after_s == 0
    assert [budget.nodes for budget in pool.disruption.budgets] == ["10%"]
    assert pool.expire_after_s == 720 * 3600


def test_v1beta1_is_translated_with_a_warning() -> None:
    warnings: list[str] = []
    raw = {"disruption": {"consolidationPolicy": "WhenUnderutilized", "expireAfter": "24h"}, "template": {"spec": {}}}
    pool = pool_of(_pool(raw, "karpenter.sh/v1beta1"), warnings=warnings)

    assert pool.disruption.policy == "WhenEmptyOrUnderutilized"
    assert pool.expire_after_s == 24 * 3600
    assert warnings == ["NodePool gpu: version karpenter.sh/v1beta1 is read as karpenter.sh/v1"]


def test_a_provisioner_is_translated_with_a_warning() -> None:
    warnings: list[str] = []
    raw = {
        "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
        "labels": {"team": "a"},
        "taints": [{"key": "gpu", "effect": "NoSchedule"}],
        "limits": {"resources": {"cpu": "100"}},
        "ttlSecondsAfterEmpty": 30,
        "ttlSecondsUntilExpired": 3600,
        "weight": 7,
    }
    pool = pool_of(_pool(raw, "karpenter.sh/v1alpha5", "Provisioner"), warnings=warnings)

    assert (pool.weight, pool.limits, pool.labels) == (7, {"cpu": 100_000}, {"team": "a"})
    assert (pool.disruption.policy, pool.disruption.consolidate_after_s) == ("WhenEmpty", 30)
    assert pool.expire_after_s == 3600
    assert [str(taint) for taint in pool.taints] == ["gpu:NoSchedule"]
    assert len(warnings) == 1


def test_never_has_no_end() -> None:
    raw = {"template": {"spec": {"expireAfter": "Never"}}, "disruption": {"consolidateAfter": "Never"}}
    pool = pool_of(_pool(raw))

    assert pool.expire_after_s is None
    assert pool.disruption.consolidate_after_s is None


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (
            {"template": {"spec": {"requirements": [{"key": "a", "operator": "Gt", "values": ["x"]}]}}},
            "requirements[0]",
        ),
        ({"template": {"spec": {"requirements": [{"key": "a", "operator": "In"}]}}}, "requirements[0].values"),
        (
            {"template": {"spec": {"requirements": [{"key": "a", "operator": "Exists", "minValues": 51}]}}},
            "requirements[0].minValues",
        ),
        ({"disruption": {"consolidationPolicy": "Sometimes"}}, "disruption.consolidationPolicy"),
        ({"disruption": {"consolidateAfter": "soon"}}, "disruption.consolidateAfter"),
        ({"disruption": {"budgets": [{"nodes": "1", "reasons": ["Whim"]}]}}, "budgets[0].reasons"),
        ({"template": {"spec": {"taints": [{"key": "-", "effect": "NoSchedule"}]}}}, "taints[0].key"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_field(spec: dict[str, Any], path: str) -> None:
    with pytest.raises(UserError) as error:
        pool_of(_pool(spec))

    assert path in str(error.value)
    assert "NodePool gpu" in str(error.value)


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        ({"disruption": {"budgets": [{"nodes": "1", "schedule": "0 9 * * *"}]}}, "write both or none"),
        ({"disruption": {"budgets": [{"nodes": "1", "schedule": "0 0 31 2 *", "duration": "1h"}]}}, "is never due"),
        ({"disruption": {"budgets": [{"nodes": "1", "schedule": "soon", "duration": "1h"}]}}, "allows no disruption"),
        ({"disruption": {"budgets": [{"nodes": "few"}]}}, "is no number"),
        ({"limits": {"cpu": "0"}}, "limit cpu allows no node"),
    ],
)
def test_what_allows_less_than_it_seems_is_a_warning(spec: dict[str, Any], warning: str) -> None:
    warnings: list[str] = []
    pool_of(_pool(spec), warnings=warnings)

    assert any(warning in each for each in warnings)
