from __future__ import annotations

import copy
from typing import Any

import pytest

from build.kind_objects import container, created, pod
from shoal.embedded.apiserver.kinds.pods.binding import bind, check_binding
from shoal.embedded.apiserver.kinds.pods.ephemeral import EPHEMERAL_CONTAINERS
from shoal.embedded.apiserver.kinds.pods.eviction import evict, mark_evicted
from shoal.embedded.apiserver.kinds.pods.resize import RESIZE
from shoal.embedded.apiserver.status import ApiError

NOW = "2026-11-21T10:00:00Z"


def binding(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "train", **metadata}, "target": {"kind": "Node", "name": "n1"}}


def test_a_binding_gives_node_annotations_labels_and_condition_at_once() -> None:
    made = created("", "pods", pod())
    bind(made, binding(annotations={"gpu": "0,1"}, labels={"zone": "a"}), NOW)
    assert made["spec"]["nodeName"] == "n1"
    assert made["metadata"]["annotations"] == {"gpu": "0,1"}
    assert made["metadata"]["labels"] == {"zone": "a"}
    assert made["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": NOW,
        }
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"spec": {"nodeName": "n0"}}, 'pod train is already assigned to node "n0"'),
        ({"metadata": {"deletionTimestamp": NOW}}, "pod train is being deleted, cannot be assigned to a host"),
        ({"spec": {"schedulingGates": [{"name": "x/a"}]}}, "pod train has non-empty .spec.schedulingGates"),
    ],
    ids=["assigned", "dying", "gated"],
)
def test_a_pod_that_cannot_have_a_node_is_a_conflict(change: dict[str, dict[str, Any]], why: str) -> None:
    made = created("", "pods", pod())
    for key, values in change.items():
        made[key] |= values
    before = copy.deepcopy(made)
    with pytest.raises(ApiError) as refused:
        bind(made, binding(), NOW)
    assert refused.value.code == 409
    assert refused.value.message == f'Operation cannot be fulfilled on pods/binding "train": {why}'
    assert made == before


def test_a_binding_for_another_pod_is_refused() -> None:
    with pytest.raises(ApiError, match="name in URL does not match name in Binding object"):
        check_binding(binding(), "other")


def test_a_binding_to_a_pod_of_the_same_name_that_came_later_is_refused() -> None:
    with pytest.raises(ApiError, match="UID in precondition: old, UID in object meta: 7c9e"):
        bind(created("", "pods", pod()), binding(uid="old"), NOW)


def running(ready: bool = True) -> dict[str, Any]:
    made = created("", "pods", pod())
    made["metadata"]["labels"] = {"app": "web"}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    made["status"] = {"phase": "Running", "conditions": conditions}
    return made


def budget(allowed: int, *, observed: int = 1, policy: str = "", **status: int) -> dict[str, Any]:
    spec: dict[str, Any] = {"selector": {"matchLabels": {"app": "web"}}}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    counted = {"disruptionsAllowed": allowed, "observedGeneration": observed, **status}
    return {"metadata": {"name": "guard", "generation": 1}, "spec": spec, "status": counted}


def test_an_eviction_spends_one_disruption() -> None:
    guard = budget(2)
    charged = evict(running(), [guard], NOW)
    assert charged is not None
    assert charged["status"]["disruptionsAllowed"] == 1
    assert charged["status"]["disruptedPods"] == {"train": NOW}
    charged["metadata"]["resourceVersion"] = "9"
    assert guard == budget(2)


def test_the_last_disruption_says_that_none_is_left() -> None:
    charged = evict(running(), [budget(1)], NOW)
    assert charged is not None
    (condition,) = charged["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "InsufficientPods")


def refusal(guard: dict[str, Any], ready: bool = True) -> ApiError:
    with pytest.raises(ApiError) as refused:
        evict(running(ready), [guard], NOW)
    return refused.value


def test_a_spent_budget_refuses_with_its_numbers() -> None:
    error = refusal(budget(0, desiredHealthy=2, currentHealthy=2))
    assert (error.code, error.reason) == (429, "TooManyRequests")
    assert error.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert error.details == {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget guard needs 2 healthy pods and has 2 currently",
            }
        ]
    }


def test_a_budget_nobody_has_looked_at_yet_asks_to_come_back() -> None:
    error = refusal(budget(5, observed=0))
    assert error.details is not None
    assert error.details["retryAfterSeconds"] == 10
    cause = error.details["causes"][0]
    assert cause["message"] == "The disruption budget guard is still being processed by the server."


def test_a_pod_that_is_not_ready_goes_when_the_others_suffice() -> None:
    assert evict(running(ready=False), [budget(0, desiredHealthy=2, currentHealthy=2)], NOW) is None
    assert refusal(budget(0, desiredHealthy=2, currentHealthy=1), ready=False).code == 429
    lenient = budget(0, policy="AlwaysAllow", desiredHealthy=2, currentHealthy=1)
    assert evict(running(ready=False), [lenient], NOW) is None


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_pods_that_do_not_run_are_beyond_budgets(phase: str) -> None:
    made = running()
    made["status"]["phase"] = phase
    assert evict(made, [budget(0)], NOW) is None


def test_two_budgets_are_more_than_eviction_understands() -> None:
    with pytest.raises(ApiError, match="more than one PodDisruptionBudget") as refused:
        evict(running(), [budget(1), budget(1)], NOW)
    assert refused.value.code == 500


def test_an_empty_selector_covers_every_pod_and_none_covers_no_pod() -> None:
    every, none = budget(1), budget(0)
    every["spec"]["selector"] = {}
    del none["spec"]["selector"]
    assert evict(running(), [every], NOW) is not None
    assert evict(running(), [none], NOW) is None


def test_an_evicted_pod_says_why_it_ended() -> None:
    made = running()
    mark_evicted(made, NOW)
    assert made["status"]["conditions"][-1]["reason"] == "EvictionByEvictionAPI"


def test_an_ephemeral_container_is_added_and_never_taken_away() -> None:
    old = created("", "pods", pod())
    new = copy.deepcopy(old)
    new["spec"]["ephemeralContainers"] = [container("debug", targetContainerName="main")]
    new["spec"]["restartPolicy"] = "Never"
    EPHEMERAL_CONTAINERS.prepare_update(new, old)
    assert new["spec"]["restartPolicy"] == "Always"
    errors = EPHEMERAL_CONTAINERS.validate_update(old, new)
    assert [error.body() for error in errors] == [
        'Forbidden: existing ephemeral containers "debug" may not be removed\n'
    ]


def test_a_resize_moves_cpu_and_memory_only() -> None:
    old = created("", "pods", pod(container(resources={"requests": {"cpu": "1"}})))
    new = copy.deepcopy(old)
    new["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert RESIZE.validate_update(new, old) == []
    new = copy.deepcopy(old)
    new["spec"]["containers"][0]["resources"] = {}
    (error,) = RESIZE.validate_update(new, old)
    assert error.detail == "Pod QOS Class may not change as a result of resizing"


def test_a_resize_takes_over_sizes_and_nothing_else() -> None:
    old = created("", "pods", pod(container(resources={"requests": {"cpu": "1"}})))
    new = copy.deepcopy(old)
    new["spec"]["containers"][0] |= {"image": "other", "resources": {"requests": {"cpu": "2"}}}
    new["spec"]["nodeName"] = "n1"
    new["metadata"]["labels"] = {"a": "b"}
    RESIZE.prepare_update(new, old)
    assert RESIZE.validate_update(new, old) == []
    wanted = copy.deepcopy(old)
    wanted["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    assert new == wanted


def test_a_resize_renames_no_container() -> None:
    old = created("", "pods", pod(container(resources={"requests": {"cpu": "1"}})))
    new = copy.deepcopy(old)
    new["spec"]["containers"][0]["name"] = "another"
    RESIZE.prepare_update(new, old)
    (error,) = RESIZE.validate_update(new, old)
    assert error.detail.startswith("only cpu and memory resources are mutable\n")
