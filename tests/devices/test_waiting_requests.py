"""Which pod a request of the kubelet is for, and which devices it gets, although the request names no pod."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from build.gpu_pods import container, device_manager, pod_of
from shoal.devices.advertised_devices import PhysicalDevice, inventory
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.waiting_requests import PodName, WaitingRequests, annotation_of

Obj = dict[str, Any]
GPU = "nvidia.com/gpu"


def gpus(machine: str = "dgx-h100", config: PluginConfig | None = None, resource: str = GPU) -> list[PhysicalDevice]:
    manager = device_manager(machine)
    return [*inventory(manager.machine.gpus, manager.gpus, config or PluginConfig()).devices[resource]]


def bound(name: str, at: int, count: int = 1, choice: str = "", containers: list[Obj] | None = None) -> Obj:
    """A pod that was bound in this second."""
    pod = pod_of(name, containers or [container("main", count)], annotations={"devices": choice} if choice else {})
    time = f"2026-01-01T00:00:{at:02}Z"
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    pod["status"] = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": time}],
    }
    return pod


def waiting(*pods: Obj) -> WaitingRequests:
    found = WaitingRequests()
    found.set_pods(pods)
    return found


def chosen(requests: WaitingRequests, count: int, free: list[PhysicalDevice]) -> list[int]:
    return [device.gpu for device in requests.chosen(GPU, count, free)]


def named(name: str) -> PodName:
    return PodName("team", name)


def test_the_oldest_bound_pod_with_that_request_gets_its_devices() -> None:
    free = gpus()
    requests = waiting(bound("late", 2, choice="5"), bound("early", 1, choice="3"), bound("large", 0, 2, "6,7"))
    assert chosen(requests, 1, free) == [3]
    assert chosen(requests, 2, free) == [6, 7]
    given = requests.record(GPU, [free[3].id])
    assert given is not None
    assert given.pod == named("early")
    assert chosen(requests, 1, free) == [5]


def test_a_request_that_no_pod_has_gets_no_choice_and_changes_nothing() -> None:
    requests = waiting(bound("one", 1, choice="3"))
    assert chosen(requests, 4, gpus()) == []
    assert requests.record(GPU, ["a", "b", "c", "d"]) is None
    assert chosen(requests, 1, gpus()) == [3]


def test_a_choice_of_a_device_that_is_not_available_is_no_choice() -> None:
    free = gpus()
    requests = waiting(bound("one", 1, 2, "2,3"))
    assert chosen(requests, 2, free[:3]) == []


def test_a_choice_by_ids_is_read_by_container() -> None:
    free = gpus()
    text = annotation_of({"main": {GPU: [free[4].id]}, "side": {GPU: [free[1].id]}})
    requests = waiting(bound("one", 1, choice=text, containers=[container("main", 1), container("side", 1)]))
    assert chosen(requests, 1, free) == [4]
    requests.record(GPU, [free[4].id])
    assert chosen(requests, 1, free) == [1]


def test_numbers_are_assigned_to_the_containers_in_order_also_after_the_first_has_its_devices() -> None:
    free = gpus()
    containers = [container("main", 2), container("side", 1)]
    requests = waiting(bound("one", 1, choice="6,7,2", containers=containers))
    requests.record(GPU, [free[6].id, free[7].id])
    assert chosen(requests, 1, free[:6]) == [2]


def test_a_pod_that_has_ended_waits_for_nothing() -> None:
    ended = bound("ended", 1, choice="3")
    ended["status"]["phase"] = "Failed"
    assert chosen(waiting(ended, bound("next", 2, choice="4")), 1, gpus()) == [4]


def test_a_pod_that_is_being_deleted_waits_for_nothing_and_keeps_its_devices() -> None:
    free = gpus()
    deleted = bound("deleted", 1, choice="3")
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z"
    requests = waiting(deleted, bound("next", 2, choice="4"))
    assert chosen(requests, 1, free) == [4]
    held = {"main": {GPU: [free[5].id]}}
    assert [one.pod for one in requests.verify({named("deleted"): held})] == [named("deleted")]


def test_the_devices_that_the_kubelet_allocated_decide_which_pod_they_are_for() -> None:
    free = gpus()
    requests = waiting(bound("first", 1, choice="3"), bound("second", 2, choice="5"))
    given = requests.record(GPU, [free[5].id])
    assert given is None or given.pod == named("first")
    requests = waiting(bound("first", 1, choice="3"), bound("second", 2, choice="5"))
    requests.chosen(GPU, 1, free)
    given = requests.record(GPU, [free[5].id])
    assert given is not None
    assert given.pod == named("second")


def test_a_wrong_match_is_corrected_by_the_list_of_the_kubelet() -> None:
    free = gpus()
    requests = waiting(bound("first", 1, choice="3"), bound("second", 2, choice="5"))
    requests.chosen(GPU, 1, free)
    requests.record(GPU, [free[3].id])
    holders = {named("second"): {"main": {GPU: [free[3].id]}}}
    assert not requests.is_certain(holders)
    (actual,) = requests.verify(holders)
    assert (actual.pod, actual.devices) == (named("second"), {"main": {GPU: (free[3].id,)}})
    assert requests.is_certain(holders)
    assert chosen(requests, 1, free) == [3]
    assert requests.is_awaited(GPU, 1)


def test_a_match_is_kept_while_the_kubelet_does_not_list_the_pod_yet() -> None:
    free = gpus()
    requests = waiting(bound("first", 1, choice="3"), bound("second", 2, choice="5"))
    requests.chosen(GPU, 1, free)
    requests.record(GPU, [free[3].id])
    assert requests.verify({}) == ()
    assert not requests.is_certain({})
    assert chosen(requests, 1, free) == [5]


@pytest.mark.parametrize("known", ["annotation", "status"])
def test_devices_that_the_cluster_knows_are_not_reported(known: str) -> None:
    free = gpus()
    held = {"main": {GPU: [free[3].id]}}
    pod = bound("one", 1, choice=annotation_of(held) if known == "annotation" else "")
    if known == "status":
        entry = {"name": GPU, "resources": [{"resourceID": free[3].id}]}
        pod["status"]["containerStatuses"] = [{"name": "main", "allocatedResourcesStatus": [entry]}]
    assert waiting(pod).verify({named("one"): held}) == ()


def test_devices_of_a_pod_without_a_choice_are_reported_and_those_of_other_resources_are_not() -> None:
    free = gpus()
    held = {"main": {GPU: [free[3].id], "rdma/hca": ["mlx5_0"]}, "other": {GPU: ["x"]}}
    (actual,) = waiting(bound("one", 1)).verify({named("one"): held})
    assert annotation_of(actual.devices) == msgspec.json.encode({"main": {GPU: [free[3].id]}}).decode()


def test_devices_are_free_for_the_next_pod_when_the_former_is_gone() -> None:
    free = gpus()
    requests = waiting(bound("first", 1, choice="3"))
    requests.record(GPU, [free[3].id])
    requests.set_pods([bound("next", 5, choice="3")])
    assert chosen(requests, 1, free) == [3]


def test_the_devices_chosen_for_other_waiting_pods_are_known() -> None:
    free = gpus()
    requests = waiting(bound("unchosen", 1), bound("second", 2, choice="5"), bound("large", 3, 2, "6,7"))
    assert requests.chosen_for_others(GPU, 1, free) == {free[gpu].id for gpu in (5, 6, 7)}
    assert requests.chosen_for_others(GPU, 2, free) == {free[5].id}


def test_mig_instances_are_chosen_by_gpu_and_first_slice() -> None:
    name = "nvidia.com/mig-1g.10gb"
    free = gpus("dgx-h100[mig=all-1g.10gb]", PluginConfig(mig_strategy="mixed"), name)
    pod = bound("one", 1, choice="2:4", containers=[container("main", 1, name)])
    (device,) = waiting(pod).chosen(name, 1, free)
    assert device.cut is not None
    assert (device.gpu, device.cut.start) == (2, 4)
