from __future__ import annotations

import copy
from typing import Any

from build.kind_objects import complaints, created, texts
from shoal.embedded.apiserver.kinds.autoscaling.conversion import convert
from shoal.embedded.apiserver.kinds.table import STRATEGIES


def node(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n1"}, "spec": spec, "status": {"capacity": {"cpu": "8", "nvidia.com/gpu": "8"}}}


def test_a_node_registers_with_its_status() -> None:
    made = created("", "nodes", node())
    assert made["status"]["allocatable"] == {"cpu": "8", "nvidia.com/gpu": "8"}
    assert made["status"]["nodeInfo"]["kubeletVersion"] == ""
    assert STRATEGIES["", "nodes"].validate(made) == []


def test_taints_are_unique_by_key_and_effect() -> None:
    twice = [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "x", "effect": "NoSchedule"}]
    assert complaints("", "nodes", node(taints=twice)) == [
        (
            'metadata.taints[1]: Duplicate value: {"key":"a","value":"x","effect":"NoSchedule"}: '
            "taints must be unique by key and effect pair"
        )
    ]
    assert complaints("", "nodes", node(taints=[{"key": "a", "effect": "Never"}])) == [
        (
            'metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"'
        )
    ]


def test_the_provider_of_a_node_is_said_once() -> None:
    old = created("", "nodes", node())
    new = copy.deepcopy(old)
    new["spec"] |= {"providerID": "a", "unschedulable": True}
    strategy = STRATEGIES["", "nodes"]
    assert strategy.validate_update(new, old) == []
    newer = copy.deepcopy(new)
    newer["spec"]["providerID"] = "b"
    assert texts(strategy.validate_update(newer, new)) == [
        'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid'
    ]
    assert strategy.fields(new) == {"spec.unschedulable": "true"}


def budget(**spec: Any) -> list[str]:
    made = {"metadata": {"name": "guard"}, "spec": {"selector": {}, **spec}}
    return complaints("policy", "poddisruptionbudgets", made)


def test_a_budget_says_either_how_many_stay_or_how_many_go() -> None:
    assert budget(minAvailable=1) == []
    assert budget(maxUnavailable="50%") == []
    (text,) = budget(minAvailable=1, maxUnavailable=1)
    assert text.endswith("minAvailable and maxUnavailable cannot be both set")
    assert budget(minAvailable="150%") == [
        'spec.minAvailable: Invalid value: "150%": must not be greater than 100%',
    ]
    assert budget(minAvailable="half")[0].startswith(
        'spec.minAvailable: Invalid value: "half": a valid percent string must be a numeric string followed by'
    )


def scaler(version: str = "autoscaling/v2", **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    whole = {"scaleTargetRef": target, "maxReplicas": 5, **spec}
    return {"apiVersion": version, "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}, "spec": whole}


SCALERS = ("autoscaling", "horizontalpodautoscalers")
USUAL = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def test_an_autoscaler_watches_the_cpu_unless_told_otherwise() -> None:
    spec = created(*SCALERS, scaler())["spec"]
    assert spec["metrics"] == [USUAL]
    assert spec["minReplicas"] == 1


def test_one_direction_of_behavior_spells_out_both() -> None:
    behavior = created(*SCALERS, scaler(behavior={"scaleDown": {"selectPolicy": "Disabled"}}))["spec"]["behavior"]
    assert behavior["scaleDown"]["selectPolicy"] == "Disabled"
    assert behavior["scaleUp"]["policies"] == [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ]


def test_a_bad_autoscaler_is_refused() -> None:
    assert complaints(*SCALERS, scaler(minReplicas=9)) == [
        "spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`"
    ]
    pods = {"type": "Pods", "pods": {"metric": {"name": "queue"}, "target": {"type": "AverageValue"}}}
    assert complaints(*SCALERS, scaler(metrics=[pods])) == [
        "spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue"
    ]


def test_v1_knows_the_share_of_cpu_and_carries_the_rest() -> None:
    queue = {
        "type": "External",
        "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "30"}},
    }
    made = created(*SCALERS, scaler(metrics=[queue, USUAL], behavior={"scaleUp": {}}))
    old = convert(made, "v2", "v1")
    assert old["apiVersion"] == "autoscaling/v1"
    assert old["spec"]["targetCPUUtilizationPercentage"] == 80
    assert "metrics" not in old["spec"]
    assert convert(old, "v1", "v2") == made


def test_a_plain_v1_autoscaler_gets_the_usual_target() -> None:
    made = created(*SCALERS, scaler("autoscaling/v1"))
    assert STRATEGIES[SCALERS].validate(made) == []
    assert convert(made, "v1", "v2")["spec"]["metrics"] == [USUAL]
