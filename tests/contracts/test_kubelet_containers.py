"""Containers of a pod beside and before each other: init containers, sidecars, probes."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from build.cluster_api import STRATEGIC, Api, Obj
from build.live_waits import conditions, until_said
from build.simulated_pods import container, place, pod, state, statuses, tell, until_phase, until_pod

pytestmark = pytest.mark.needs("kubelet")


def _since(made: Obj, condition: str) -> str:
    found: str = next(one["lastTransitionTime"] for one in made["status"]["conditions"] if one["type"] == condition)
    return found


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_init_containers_run_one_by_one_before_the_others(api: Api) -> None:
    inits = [container("first"), container("second")]
    await place(api, pod(says={"init-for": "1h"}, initContainers=inits))
    waiting = await until_pod(api, lambda one: "running" in state(one, "first"))
    assert waiting["status"]["phase"] == "Pending"
    assert state(waiting, "main") == {"waiting": {"reason": "PodInitializing"}}
    assert state(waiting, "second") == {"waiting": {"reason": "PodInitializing"}}
    words = ("False", "ContainersNotInitialized", "containers with incomplete status: [first second]")
    assert conditions(waiting)["Initialized"] == words
    await tell(api, {"init-for.first": "1ms"})
    half = await until_pod(api, lambda one: "running" in state(one, "second"))
    assert state(half, "first")["terminated"]["reason"] == "Completed"
    assert conditions(half)["Initialized"][2] == "containers with incomplete status: [second]"
    await tell(api, {"init-for.second": "1ms"})
    found = await until_phase(api, "Running")
    assert conditions(found)["Initialized"][0] == "True"
    ends = [statuses(found)[name]["state"]["terminated"] for name in ("first", "second")]
    assert ends[0]["finishedAt"] <= ends[1]["startedAt"]


async def test_a_pod_whose_init_container_fails_fails_without_having_run(api: Api) -> None:
    says = {"init-for": "200ms", "init-exit-code": "2"}
    await place(api, pod(says=says, restartPolicy="Never", initContainers=[container("first")]))
    found = await until_phase(api, "Failed")
    assert state(found, "first")["terminated"]["exitCode"] == 2
    assert "running" not in state(found, "main")
    assert statuses(found)["main"]["restartCount"] == 0
    assert conditions(found)["Initialized"][0] == "False"


async def test_an_init_container_that_fails_is_tried_again(api: Api) -> None:
    says = {"init-for": "200ms", "init-exit-code": "2"}
    await place(api, pod(says=says, initContainers=[container("first")]))
    found = await until_pod(api, lambda one: "CrashLoopBackOff" in str(state(one, "first")))
    assert found["status"]["phase"] == "Pending"


async def test_a_sidecar_runs_before_and_beside_and_ends_with_the_pod(api: Api) -> None:
    sidecar = container("proxy", restartPolicy="Always")
    inits = [sidecar, container("setup")]
    says = {"run-for": "1h", "init-for": "1h", "stop-after": "200ms"}
    await place(api, pod(says=says, restartPolicy="Never", initContainers=inits))
    early = await until_pod(api, lambda one: "running" in state(one, "setup"))
    assert "running" in state(early, "proxy")
    assert statuses(early)["proxy"]["started"] is True
    await tell(api, {"init-for": "1ms"})
    running = await until_pod(api, lambda one: "running" in state(one, "main"))
    assert "running" in state(running, "proxy")
    await tell(api, {"run-for": "1ms"})
    found = await until_phase(api, "Succeeded")
    assert state(found, "main")["terminated"]["exitCode"] == 0
    assert "terminated" in state(found, "proxy")


async def test_a_pod_is_ready_when_its_containers_say_so(api: Api) -> None:
    containers = [container("fast"), container("slow")]
    await place(api, pod("pod", *containers, says={"ready-after.slow": "1h"}))
    found = await until_phase(api, "Running")
    unready = ("False", "ContainersNotReady", "containers with unready status: [slow]")
    found = await until_pod(api, lambda one: statuses(one)["fast"]["ready"])
    assert conditions(found)["Ready"] == conditions(found)["ContainersReady"] == unready
    await tell(api, {"ready-after.slow": "1ms"})
    await until_pod(api, lambda one: conditions(one)["Ready"][0] == "True")


async def test_a_readiness_probe_waits_as_long_as_it_is_told(api: Api) -> None:
    probe = {"httpGet": {"port": 80}, "initialDelaySeconds": 1}
    await place(api, pod("pod", container(readinessProbe=probe)))
    found = await until_pod(api, lambda one: conditions(one).get("Ready", ("",))[0] == "True")
    began, is_ready = _moment(state(found)["running"]["startedAt"]), _moment(_since(found, "Ready"))
    # Both are told in whole seconds.
    assert is_ready - began >= timedelta(seconds=1)


async def test_a_pod_that_stops_being_ready_runs_on(api: Api) -> None:
    await place(api, pod("pod", container(readinessProbe={"httpGet": {"port": 80}}), says={"unready-after": "1h"}))
    await until_pod(api, lambda one: conditions(one).get("Ready", ("",))[0] == "True")
    await tell(api, {"unready-after": "1ms"})
    found = await until_pod(api, lambda one: conditions(one)["Ready"][0] == "False")
    assert "running" in state(found)
    (event, *_) = await until_said(api, "pod", "Unhealthy")
    assert event["message"] == "Readiness probe failed: HTTP probe failed with statuscode: 503"


async def test_a_container_that_is_not_alive_is_killed_and_started_again(api: Api) -> None:
    probe = {"httpGet": {"port": 80}}
    await place(api, pod("pod", container(livenessProbe=probe), says={"unhealthy-after": "500ms"}))
    found = await until_pod(api, lambda one: statuses(one).get("main", {}).get("restartCount", 0) >= 1)
    assert statuses(found)["main"]["lastState"]["terminated"]["exitCode"] == 137
    (event, *_) = await until_said(api, "pod", "Unhealthy")
    assert event["type"] == "Warning"
    messages = [one["message"] for one in await until_said(api, "pod", "Killing")]
    assert messages == ["Container main failed liveness probe, will be restarted"]


async def test_a_container_whose_image_changes_is_started_again_with_the_new_one(api: Api) -> None:
    await place(api, pod())
    before = statuses(await until_phase(api, "Running"))["main"]
    image = "registry.k8s.io/pause:3.9"
    patch = {"spec": {"containers": [{"name": "main", "image": image}]}}
    (await api.patch(api.core("pods", "pod"), patch, STRATEGIC)).ok()
    found = statuses(await until_pod(api, lambda one: statuses(one)["main"]["restartCount"] == 1))["main"]
    assert found["image"] == image
    assert found["lastState"]["terminated"]["containerID"] == before["containerID"]
    messages = [one["message"] for one in await until_said(api, "pod", "Killing")]
    assert messages == ["Container main definition changed, will be restarted"]
