"""Server-side apply by one manager in two versions whose fields differ: what he says no more goes all the same."""

from typing import Any

from build.cluster_api import Api

Obj = dict[str, Any]
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def _autoscaler(version: str, **spec: Any) -> Obj:
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3, **spec},
    }


def _cpu(percent: int) -> Obj:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


async def _apply(api: Api, version: str, manager: str = "alice", **spec: Any) -> Obj:
    path = api.group(f"autoscaling/{version}", "horizontalpodautoscalers", "h")
    found: Obj = (await api.apply(path, _autoscaler(version, **spec), manager)).ok()
    return found


async def test_what_was_said_in_one_version_is_said_again_in_the_other(api: Api) -> None:
    await _apply(api, "v1", targetCPUUtilizationPercentage=50)
    after = await _apply(api, "v2", metrics=[_cpu(50)])
    assert after["spec"]["metrics"] == [_cpu(50)]
    # The controller of autoscalers writes the status meanwhile.
    (entry,) = [each for each in after["metadata"]["managedFields"] if "subresource" not in each]
    assert (entry["manager"], entry["operation"]) == ("alice", "Apply")
    assert entry["apiVersion"] == "autoscaling/v2"


async def test_what_was_said_in_one_version_and_is_not_in_the_other_goes_back_to_its_default(api: Api) -> None:
    await _apply(api, "v1", minReplicas=2)
    after = await _apply(api, "v2")
    assert after["spec"]["minReplicas"] == 1


async def test_what_another_owns_in_his_version_stays(api: Api) -> None:
    await _apply(api, "v1", targetCPUUtilizationPercentage=50)
    await _apply(api, "v2", "bob", metrics=[_cpu(50)])
    after = await _apply(api, "v2")
    assert after["spec"]["metrics"] == [_cpu(50)]
