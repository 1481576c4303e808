"""HorizontalPodAutoscalers as their controller works: sizes outside the limits, and what it says of missing metrics."""

from __future__ import annotations

from typing import Any

import pytest

from build.cluster_api import Api, Obj
from build.live_waits import create, until, until_pods, until_said
from build.live_workloads import workload

pytestmark = pytest.mark.needs("controllers")
WAITING = {
    "type": "External",
    "external": {"metric": {"name": "waiting"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}
_LONG_S = 60.0
"""Kubernetes looks at an autoscaler every fifteen seconds."""


async def make(api: Api, name: str = "web", **spec: Any) -> None:
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
    whole = {"scaleTargetRef": target, "metrics": [WAITING], **spec}
    body = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": whole,
    }
    (await api.post(api.group("autoscaling/v2", "horizontalpodautoscalers"), body)).ok(201)


async def condition(api: Api, type_: str, reason: str) -> Obj:
    """The condition, once it has this reason."""

    def found(one: Obj) -> Obj | None:
        conditions = (one.get("status") or {}).get("conditions") or ()
        return next((each for each in conditions if (each["type"], each["reason"]) == (type_, reason)), None)

    path = api.group("autoscaling/v2", "horizontalpodautoscalers", "web")
    said = found(await until(api, path, found, within_s=_LONG_S))
    assert said is not None
    return said


async def test_a_size_outside_the_limits_is_corrected_without_a_metric(api: Api) -> None:
    await create(api, workload("ReplicaSet", replicas=1), "replicasets")
    await make(api, minReplicas=3, maxReplicas=4)
    await until_pods(api, 3)
    (said, *_) = await until_said(api, "web", "SuccessfulRescale")
    assert said["message"] == "New size: 3; reason: Current number of replicas below Spec.MinReplicas"


async def test_a_metric_that_no_server_has_is_named(api: Api) -> None:
    await create(api, workload("ReplicaSet", replicas=2), "replicasets")
    await make(api, maxReplicas=4)
    missing = await condition(api, "ScalingActive", "FailedGetExternalMetric")
    assert missing["status"] == "False"
    prefix = "the HPA was unable to compute the replica count: unable to get external metric "
    assert missing["message"].startswith(f"{prefix}{api.namespace}/waiting/nil: unable to fetch metrics from external")


async def test_a_target_at_zero_is_left_alone(api: Api) -> None:
    await create(api, workload("ReplicaSet", replicas=0), "replicasets")
    await make(api, maxReplicas=4)
    off = await condition(api, "ScalingActive", "ScalingDisabled")
    assert off["message"] == "scaling is disabled since the replica count of the target is zero"


async def test_a_target_that_is_not_there_is_named(api: Api) -> None:
    await make(api, maxReplicas=4)
    lost = await condition(api, "AbleToScale", "FailedGetScale")
    words = 'the HPA controller was unable to get the target\'s current scale: replicasets.apps "web" not found'
    assert lost["message"] == words
