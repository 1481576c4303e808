"""The life of a pod on a simulated node: phases, conditions, events, and how it ends."""

from __future__ import annotations

import pytest

from build.api_objects import HELD, let_go
from build.cluster_api import STRATEGIC, Api
from build.live_waits import conditions, until, until_gone, until_said
from build.simulated_pods import (
    container,
    place,
    pod,
    schedule,
    simulated_nodes,
    state,
    statuses,
    until_phase,
    until_pod,
)

pytestmark = pytest.mark.needs("kubelet")


async def test_a_pod_that_runs_has_all_that_people_look_at(api: Api) -> None:
    await place(api, pod())
    found = await until_pod(api, lambda one: conditions(one).get("Ready", ("",))[0] == "True")
    status = found["status"]
    assert status["phase"] == "Running"
    verdicts = {type_: verdict for type_, (verdict, _, _) in conditions(found).items()}
    assert verdicts == dict.fromkeys(
        ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "PodScheduled"), "True"
    )
    assert status["podIPs"][0] == {"ip": status["podIP"]}
    assert status["hostIPs"][0] == {"ip": status["hostIP"]}
    assert "startTime" in status
    main = statuses(found)["main"]
    assert (main["ready"], main["started"], main["restartCount"]) == (True, True, 0)
    assert main["containerID"].startswith("containerd://")
    assert "startedAt" in main["state"]["running"]
    for reason in ("Pulled", "Created", "Started"):
        (event,) = await until_said(api, "pod", reason)
        assert event["involvedObject"]["fieldPath"] == "spec.containers{main}"
        assert event["source"] == {"component": "kubelet", "host": found["spec"]["nodeName"]}


async def test_the_scheduler_says_where_it_put_a_pod(api: Api) -> None:
    await schedule(api, pod())
    found = await until_phase(api, "Running")
    (event,) = await until_said(api, "pod", "Scheduled")
    assert event["message"] == f"Successfully assigned {api.namespace}/pod to {found['spec']['nodeName']}"


async def test_a_program_that_ends_well_ends_its_pod_well(api: Api) -> None:
    await place(api, pod(says={"run-for": "500ms"}, restartPolicy="Never"))
    found = await until_phase(api, "Succeeded")
    ended = state(found)["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")
    assert ended["startedAt"] <= ended["finishedAt"]
    told = conditions(found)
    assert told["Ready"] == told["ContainersReady"] == ("False", "PodCompleted", "")
    assert told["Initialized"][:2] == ("True", "PodCompleted")


async def test_a_program_that_fails_fails_its_pod(api: Api) -> None:
    await place(api, pod(says={"run-for": "200ms", "exit-code": "3"}, restartPolicy="Never"))
    found = await until_phase(api, "Failed")
    ended = state(found)["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (3, "Error")
    assert conditions(found)["Ready"] == ("False", "PodFailed", "")


async def test_each_container_may_say_its_own(api: Api) -> None:
    says = {"run-for": "300ms", "exit-code.second": "7"}
    await place(api, pod("pod", container("first"), container("second"), says=says, restartPolicy="Never"))
    found = await until_phase(api, "Failed")
    assert {name: one["state"]["terminated"]["exitCode"] for name, one in statuses(found).items()} == {
        "first": 0,
        "second": 7,
    }


async def test_whoever_crashes_again_and_again_waits_longer_and_longer(api: Api) -> None:
    await place(api, pod(says={"run-for": "200ms", "exit-code": "1"}, restartPolicy="OnFailure"))
    found = await until_pod(api, lambda one: state(one).get("waiting", {}).get("reason") == "CrashLoopBackOff")
    main, uid = statuses(found)["main"], found["metadata"]["uid"]
    words = f"back-off 10s restarting failed container=main pod=pod_{api.namespace}({uid})"
    assert main["state"]["waiting"]["message"] == words
    assert main["restartCount"] == 1
    assert main["lastState"]["terminated"]["exitCode"] == 1
    assert found["status"]["phase"] == "Running"
    (event, *_) = await until_said(api, "pod", "BackOff")
    assert (event["type"], event["message"]) == (
        "Warning",
        f"Back-off restarting failed container main in pod pod_{api.namespace}({uid})",
    )


async def test_a_service_that_ends_is_started_again(api: Api) -> None:
    await place(api, pod(says={"run-for": "300ms"}))
    found = await until_pod(api, lambda one: statuses(one).get("main", {}).get("restartCount", 0) >= 1)
    assert statuses(found)["main"]["lastState"]["terminated"]["reason"] == "Completed"


async def test_a_deadline_ends_a_pod(api: Api) -> None:
    await place(api, pod(activeDeadlineSeconds=1))
    found = await until_phase(api, "Failed")
    status = found["status"]
    assert (status["reason"], status["message"]) == (
        "DeadlineExceeded",
        "Pod was active on the node longer than the specified deadline",
    )


async def test_a_gate_of_others_decides_about_readiness_too(api: Api) -> None:
    await place(api, pod(readinessGates=[{"conditionType": "example.com/go"}]))
    found = await until_pod(api, lambda one: conditions(one).get("ContainersReady", ("",))[0] == "True")
    assert conditions(found)["Ready"][:2] == ("False", "ReadinessGatesNotReady")
    go = {"status": {"conditions": [{"type": "example.com/go", "status": "True"}]}}
    (await api.patch(api.core("pods", "pod", "status"), go, STRATEGIC)).ok()
    await until_pod(api, lambda one: conditions(one)["Ready"][0] == "True")


# -- ends that are asked for ------------------------------------------------------------------------------------------


async def test_a_deleted_pod_is_gone_when_its_program_has_stopped(api: Api) -> None:
    await place(api, pod(says={"stop-after": "300ms"}, terminationGracePeriodSeconds=30))
    await until_phase(api, "Running")
    going = (await api.delete(api.core("pods", "pod"))).ok()
    assert going["metadata"]["deletionGracePeriodSeconds"] == 30
    await until_gone(api, api.core("pods", "pod"))
    (event,) = await until_said(api, "pod", "Killing")
    assert event["message"] == "Stopping container main"


async def test_a_program_that_heeds_the_signal_ends_with_its_code(api: Api) -> None:
    await held_to_the_end(api, {"stop-after": "300ms"}, 30, 143)


async def test_a_program_that_does_not_is_killed_when_its_time_is_over(api: Api) -> None:
    await held_to_the_end(api, {"stop-after": "1h"}, 1, 137)


async def held_to_the_end(api: Api, says: dict[str, str], grace_s: int, code: int) -> None:
    made = pod(says=says, terminationGracePeriodSeconds=grace_s)
    made["metadata"]["finalizers"] = [HELD]
    await place(api, made)
    await until_phase(api, "Running")
    (await api.delete(api.core("pods", "pod"))).ok()
    found = await until_phase(api, "Failed")
    assert state(found)["terminated"]["exitCode"] == code
    await let_go(api, api.core("pods", "pod"))
    await until_gone(api, api.core("pods", "pod"))


async def test_a_deletion_without_grace_is_at_once(api: Api) -> None:
    await place(api, pod(says={"stop-after": "1h"}, terminationGracePeriodSeconds=600))
    await until_phase(api, "Running")
    (await api.delete(api.core("pods", "pod"), gracePeriodSeconds=0)).ok()
    assert (await api.get(api.core("pods", "pod"))).code == 404


async def test_a_shorter_time_that_is_asked_for_later_counts(api: Api) -> None:
    await place(api, pod(says={"stop-after": "1h"}, terminationGracePeriodSeconds=600))
    await until_phase(api, "Running")
    (await api.delete(api.core("pods", "pod"))).ok()
    (await api.delete(api.core("pods", "pod"), gracePeriodSeconds=1)).ok()
    await until_gone(api, api.core("pods", "pod"))


# -- what is refused --------------------------------------------------------------------------------------------------


async def test_a_pod_that_wants_another_node_is_refused(api: Api) -> None:
    await place(api, pod(nodeSelector={"example.com/no": "such"}))
    found = await until_phase(api, "Failed")
    assert found["status"]["reason"] == "NodeAffinity"
    assert found["status"]["message"] == (
        "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    )


async def test_more_processors_than_a_node_has_are_refused(api: Api) -> None:
    node = (await simulated_nodes(api))[0]
    main = container(resources={"requests": {"cpu": "100000"}})
    await place(api, pod("pod", main), node["metadata"]["name"])
    found = await until_phase(api, "Failed")
    assert found["status"]["reason"] == "OutOfcpu"
    assert found["status"]["message"].startswith(
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 100000000, used: "
    )
    (event, *_) = await until_said(api, "pod", "OutOfcpu")
    assert event["type"] == "Warning"


async def test_an_annotation_that_cannot_be_read_is_an_event(api: Api) -> None:
    await place(api, pod(says={"run-for": "soon", "exit-code": "many"}))
    await until_phase(api, "Running")
    told = await until(
        api,
        api.core("events"),
        lambda events: len(events["items"]) == 2,
        fieldSelector="involvedObject.name=pod,reason=InvalidAnnotation",
    )
    words = sorted(event["message"] for event in told["items"])
    assert words[0].startswith('shoal.dev/exit-code: "many" is not a number from 0 to 255')
    assert words[1].startswith('shoal.dev/run-for: "soon" is not a duration')
    assert {event["type"] for event in told["items"]} == {"Warning"}


@pytest.mark.slow
async def test_a_node_that_was_called_unknown_says_that_it_is_well(api: Api) -> None:
    """As after its machine slept: within the ten seconds in which a kubelet looks at its node."""
    path = f"/api/v1/nodes/{(await simulated_nodes(api))[-1]['metadata']['name']}"
    unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "as the test says"}
    (await api.patch(f"{path}/status", {"status": {"conditions": [unknown]}}, STRATEGIC)).ok()
    await until(api, path, lambda one: conditions(one)["Ready"][:2] == ("True", "KubeletReady"))
    await until(api, path, lambda one: not one["spec"].get("taints"))
