"""The one word that says how a pod is, and the counts beside it."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.embedded.apiserver.tables.pods import cells, conditions

NOW_S = 1795000000  # 2026-11-18T11:06:40Z


def running(**more: Any) -> dict[str, Any]:
    return {"name": "c", "ready": True, "restartCount": 0, "state": {"running": {}}, **more}


def waiting(reason: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "ready": False, "restartCount": 0, "state": {"waiting": {"reason": reason}}, **more}


def ended(code: int, reason: str = "", **more: Any) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, **({"reason": reason} if reason else {}), **more}}
    return {"name": "c", "ready": False, "restartCount": 0, "state": state}


def pod(*containers: dict[str, Any], phase: str = "Running", init: tuple[Any, ...] = (), **status: Any) -> Any:
    """A pod with these container statuses; `init` pairs a container with its status."""
    spec: dict[str, Any] = {"containers": [{"name": "c"} for _ in containers] or [{"name": "c"}]}
    found = {"phase": phase, "containerStatuses": list(containers), **status}
    if init:
        spec["initContainers"] = [container for container, _ in init]
        found["initContainerStatuses"] = [one for _, one in init]
    return {"metadata": {"name": "p", "creationTimestamp": "2026-11-18T11:06:00Z"}, "spec": spec, "status": found}


def deleted(found: Any) -> Any:
    found["metadata"]["deletionTimestamp"] = "2026-11-18T11:06:30Z"
    return found


def condition(kind: str, status: str = "True", reason: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason}


FIRST = {"name": "first"}
SIDECAR = {"name": "side", "restartPolicy": "Always"}

CASES: dict[str, tuple[Any, str, str]] = {
    "a pod nobody placed yet": (pod(phase="Pending"), "0/1", "Pending"),
    "all containers run": (pod(running(), running()), "2/2", "Running"),
    "one of two is not ready": (pod(running(), running(ready=False)), "1/2", "Running"),
    "a gated pod": (
        pod(phase="Pending", conditions=[condition("PodScheduled", "False", "SchedulingGated")]),
        "0/1",
        "SchedulingGated",
    ),
    "a container that keeps failing": (pod(waiting("CrashLoopBackOff")), "0/1", "CrashLoopBackOff"),
    "the first container overrules the others": (
        pod(waiting("ErrImagePull"), waiting("CrashLoopBackOff")),
        "0/2",
        "ErrImagePull",
    ),
    "a pod that ended well": (pod(ended(0, "Completed"), phase="Succeeded"), "0/1", "Completed"),
    "a pod that failed": (pod(ended(1, "Error"), phase="Failed"), "0/1", "Error"),
    "an end without a reason": (pod(ended(3), phase="Failed"), "0/1", "ExitCode:3"),
    "an end by a signal": (pod(ended(0, signal=9), phase="Failed"), "0/1", "Signal:9"),
    "an evicted pod": (pod(phase="Failed", reason="Evicted"), "0/1", "Evicted"),
    "one container is through, another runs": (
        pod(ended(0, "Completed"), running(), conditions=[condition("Ready")]),
        "1/2",
        "Running",
    ),
    "the same before the pod is ready": (pod(ended(0, "Completed"), running()), "1/2", "NotReady"),
    "a pod that is being deleted": (deleted(pod(running())), "1/1", "Terminating"),
    "a deleted pod that is through": (deleted(pod(ended(0, "Completed"), phase="Succeeded")), "0/1", "Completed"),
    "a deleted pod on a lost node": (deleted(pod(running(), reason="NodeLost")), "1/1", "Unknown"),
    "the first init container runs": (
        pod(phase="Pending", init=((FIRST, running()), ({"name": "second"}, {"name": "second"}))),
        "0/1",
        "Init:0/2",
    ),
    "the second init container waits": (
        pod(phase="Pending", init=((FIRST, ended(0)), (FIRST, waiting("ImagePullBackOff")))),
        "0/1",
        "Init:ImagePullBackOff",
    ),
    "an init container failed": (pod(phase="Pending", init=((FIRST, ended(2, "Error")),)), "0/1", "Init:Error"),
    "an init container was killed": (pod(phase="Pending", init=((FIRST, ended(2)),)), "0/1", "Init:ExitCode:2"),
    "a sidecar counts among the containers": (
        pod(running(), init=((SIDECAR, running(name="side", started=True)),)),
        "2/2",
        "Running",
    ),
    "a sidecar that has not started holds the pod up": (
        pod(phase="Pending", init=((SIDECAR, running(name="side", started=False)),)),
        "0/2",
        "Init:0/1",
    ),
}


@pytest.mark.parametrize(("found", "ready", "state"), CASES.values(), ids=CASES)
def test_a_pod_is_summed_up_in_a_word(found: Any, ready: str, state: str) -> None:
    assert cells(found, NOW_S)[1:3] == [ready, state]


def test_restarts_say_when_the_last_one_was() -> None:
    last = {"lastState": {"terminated": {"finishedAt": "2026-11-18T11:04:00Z"}}}
    older = {"lastState": {"terminated": {"finishedAt": "2026-11-18T10:04:00Z"}}}
    found = pod(running(restartCount=2, **last), running(restartCount=1, **older))
    assert cells(found, NOW_S)[3] == "3 (2m40s ago)"


def test_restarts_without_a_time_are_a_number() -> None:
    assert cells(pod(running(restartCount=2)), NOW_S)[3] == "2"


def test_restarts_of_init_containers_are_forgotten_once_they_are_through() -> None:
    done = {**ended(0), "restartCount": 5}
    assert cells(pod(running(), init=((FIRST, done),)), NOW_S)[3] == "0"
    held_up = pod(phase="Pending", init=((FIRST, {**waiting("CrashLoopBackOff"), "restartCount": 5}),))
    assert cells(held_up, NOW_S)[3] == "5"


def test_wide_columns_say_where_the_pod_is() -> None:
    found = pod(running(), podIPs=[{"ip": "10.0.0.9"}], nominatedNodeName="n2", conditions=[condition("gate/a")])
    found["spec"] |= {"nodeName": "n1", "readinessGates": [{"conditionType": "gate/a"}, {"conditionType": "gate/b"}]}
    assert cells(found, NOW_S)[4:] == ["40s", "10.0.0.9", "n1", "n2", "1/2"]
    assert cells(pod(), NOW_S)[5:] == ["<none>", "<none>", "<none>", "<none>"]


@pytest.mark.parametrize(("phase", "reasons"), [("Succeeded", ["Succeeded"]), ("Failed", ["Failed"]), ("Running", [])])
def test_a_row_says_whether_the_pod_is_through(phase: str, reasons: list[str]) -> None:
    found = conditions(pod(phase=phase)) or []
    assert [(one["type"], one["reason"]) for one in found] == [("Completed", reason) for reason in reasons]
