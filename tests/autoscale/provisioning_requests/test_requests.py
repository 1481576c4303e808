"""The conditions of ProvisioningRequests, and the pods that they ask capacity for."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from msgspec.structs import replace

from build.pool_worlds import machine, pod, standing, world
from shoal.api.pod import Pod
from shoal.autoscale.nodes.bookings import with_bookings
from shoal.autoscale.nodes.plan import NodePlan, PodRefusal
from shoal.autoscale.nodes.planner import plan_nodes
from shoal.autoscale.nodes.planning_input import pod_key
from shoal.autoscale.provisioning_requests.pods import requested_pods, unconsumed
from shoal.autoscale.provisioning_requests.progress import (
    NewCondition,
    due_condition,
    found_condition,
    next_due_s,
    retry_s,
)
from shoal.autoscale.provisioning_requests.request import (
    ATOMIC_SCALE_UP,
    CHECK_CAPACITY,
    ProvisioningRequest,
    RequestedPods,
    request_of,
)
from shoal.units.errors import UserError

ONE = machine("gpu-1", 8, price=4, gpus=1)


def _request(class_name: str = ATOMIC_SCALE_UP, conditions: dict[str, int] | None = None, **spec: Any) -> Any:
    """`conditions`: those that are true, and since which second of the day."""
    return request_of(
        {
            "metadata": {"namespace": "default", "name": "train", "uid": "u", "creationTimestamp": _time(0)},
            "spec": {
                "provisioningClassName": class_name,
                "podSets": [{"podTemplateRef": {"name": "worker"}, "count": 2}],
                **spec,
            },
            "status": {
                "conditions": [
                    {"type": name, "status": "True", "lastTransitionTime": _time(second)}
                    for name, second in (conditions or {}).items()
                ]
            },
        }
    )


def _time(second: int) -> str:
    return f"2026-11-27T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


START_S = _request().created_s


def _due(request: ProvisioningRequest, second: int) -> str | None:
    found = due_condition(request, START_S + second)
    return None if found is None else f"{found.type} {found.reason}"


def test_time_alone_accepts_a_request_ends_it_and_ends_its_booking() -> None:
    provisioned = {"Accepted": 0, "Provisioned": 60}
    short = {"ValidUntilSeconds": "3600"}

    assert _due(_request(), 0) == "Accepted Accepted"
    assert _due(_request(conditions={"Accepted": 0}), 3600) is None
    assert _due(_request(conditions={"Accepted": 0}, parameters=short), 3599) is None
    assert _due(_request(conditions={"Accepted": 0}, parameters=short), 3600) == "Failed Expired"
    assert _due(_request(conditions=provisioned, parameters=short), 659) is None
    assert _due(_request(conditions=provisioned, parameters=short), 660) == (
        "BookingExpired CapacityReservationTimeExpired"
    )
    assert next_due_s(_request(conditions=provisioned)) == START_S + 660


@pytest.mark.parametrize("condition", ["Failed", "BookingExpired", "CapacityRevoked"])
def test_a_request_has_ended_once_it_failed_or_its_capacity_is_not_kept(condition: str) -> None:
    assert not _request(conditions={"Accepted": 0, "Provisioned": 0}).is_ended
    assert _request(conditions={"Accepted": 0, condition: 0}).is_ended


def test_requests_of_other_classes_are_left_alone() -> None:
    assert _request(CHECK_CAPACITY).is_known
    assert not _request("queued-provisioning.gke.io").is_known


def test_the_wait_for_another_try_doubles_from_one_minute_to_ten() -> None:
    assert [retry_s(attempts) for attempts in (1, 2, 3, 4, 5, 9)] == [60, 120, 240, 480, 600, 600]


# -- what a plan means ------------------------------------------------------------------------------------------------

KEYS = ("default/a", "default/b")


def _found(plan: NodePlan, class_name: str = ATOMIC_SCALE_UP, **spec: Any) -> NewCondition | None:
    return found_condition(_request(class_name, **spec), KEYS, plan, {"n1", "granted"})


def test_capacity_is_provisioned_once_the_cloud_has_granted_all_nodes() -> None:
    here = NodePlan(placed={"default/a": "n1", "default/b": "granted"})
    requested = NodePlan(placed={"default/a": "n1", "default/b": "claim"})

    found = _found(here)
    assert found is not None
    assert (found.type, found.is_true, found.reason) == ("Provisioned", True, "CapacityIsProvisioned")
    assert _found(requested) is None
    assert _found(NodePlan(placed={"default/a": "n1"})) is None, "the other pod gets a new node"


def test_a_request_without_capacity_is_tried_again_unless_it_asks_to_be_tried_once() -> None:
    refusal = PodRefusal("default/b", {"gpu": "no instance type has the devices"})
    plan = NodePlan(pending=(PodRefusal("default/a", reason="no place for default/b of its gang"), refusal))
    found, once = _found(plan), _found(plan, CHECK_CAPACITY, parameters={"noRetry": "true"})

    assert found is not None
    assert found == NewCondition(
        "Provisioned",
        False,
        "CapacityIsNotFound",
        "no nodes can be provisioned for all pods: pool gpu: no instance type has the devices",
    )
    assert once is not None
    assert (once.type, once.is_true, once.reason) == ("Failed", True, "CapacityIsNotFound")


# -- its pods ---------------------------------------------------------------------------------------------------------


def _template(gpus: int = 1) -> dict[str, Any]:
    limits = {"cpu": "1", "nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
    }


def _consuming(name: str, key: str, gpus: int = 1) -> Pod:
    made = pod(name, "1", gpus=gpus, annotations={key: "train"})
    container = made.spec.containers[0]
    only_limits = replace(container, resources=replace(container.resources, requests={}))
    return replace(made, spec=replace(made.spec, containers=(only_limits,)))


def test_a_request_has_the_pods_of_its_templates_less_those_that_exist() -> None:
    request = replace(_request(), pod_sets=(RequestedPods("worker", 2), RequestedPods("large", 1)))
    pods = requested_pods(request, {"worker": _template(), "large": _template(8)})
    new, old = (
        "autoscaling.x-k8s.io/consume-provisioning-request",
        ("cluster-autoscaler.kubernetes.io/consume-provisioning-request"),
    )

    assert [key.metadata.name for key in pods] == ["train-requested-0-0", "train-requested-0-1", "train-requested-1-0"]
    assert pods[0].metadata.labels == {"app": "x"}
    left = unconsumed(request, pods, [_consuming("p0", new, 8), _consuming("p1", old)])
    assert [each.metadata.name for each in left] == ["train-requested-0-1"]
    elsewhere = replace(_consuming("p0", new), metadata=replace(_consuming("p0", new).metadata, namespace="other"))
    assert unconsumed(request, pods, [elsewhere, pod("p2", gpus=1)]) == pods


def test_pods_that_exist_take_their_own_kind_first_and_then_the_first_that_is_left() -> None:
    request = replace(_request(), pod_sets=(RequestedPods("worker", 1), RequestedPods("large", 2)))
    pods = requested_pods(request, {"worker": _template(), "large": _template(8)})
    key = "autoscaling.x-k8s.io/consume-provisioning-request"
    left = unconsumed(request, pods, [_consuming("p0", key, 8), _consuming("p1", key, 4)])
    assert [each.metadata.name for each in left] == ["train-requested-1-1"]
    assert unconsumed(request, pods, [_consuming(f"p{number}", key, 8) for number in range(4)]) == ()


def test_the_effort_for_pods_that_exist_grows_with_their_number_only() -> None:
    def calls(count: int) -> int:
        request = replace(_request(), pod_sets=(RequestedPods("worker", count), RequestedPods("large", count)))
        pods = requested_pods(request, {"worker": _template(), "large": _template(8)})
        present = [_consuming("p", "autoscaling.x-k8s.io/consume-provisioning-request", 8)] * count
        found = 0

        def count_call(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal found
            found += event == "call"

        sys.setprofile(count_call)
        try:
            unconsumed(request, pods, present)
        finally:
            sys.setprofile(None)
        return found

    assert calls(200) < 2.5 * calls(100)


@pytest.mark.parametrize(
    ("pod_sets", "message"),
    {
        "a template that is not there": ((RequestedPods("lost", 1),), "PodTemplate lost not found"),
        "too many pods": ((RequestedPods("worker", 10_001),), "too many pods"),
        "no pods": ((RequestedPods("worker", 0),), "no pods are requested"),
    }.values(),
)
def test_a_request_of_which_no_pods_can_be_made_says_why(pod_sets: tuple[RequestedPods, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        requested_pods(replace(_request(), pod_sets=pod_sets), {"worker": _template()})


# -- capacity that is kept --------------------------------------------------------------------------------------------


def test_other_pods_do_not_get_capacity_that_is_kept() -> None:
    nodes = [standing("n1", ONE), standing("n2", ONE)]
    kept = [pod("kept", gpus=1)]
    given, homeless = with_bookings(world((ONE,), [pod("other", gpus=1), pod("more", gpus=1)], nodes=nodes), kept)
    plan = plan_nodes(given)

    assert not homeless
    assert len(plan.placed) == 1
    assert len(plan.new_nodes) == 1


def test_kept_capacity_whose_node_is_gone_is_told() -> None:
    kept = [pod("kept", gpus=1), pod("second", gpus=1)]
    _, homeless = with_bookings(world((ONE,), nodes=[standing("n1", ONE)]), kept)

    assert homeless == {pod_key(kept[1])}
