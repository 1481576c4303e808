"""Which devices running pods hold, whatever is heard first, and what is left of it when they are gone."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from build.fed_worlds import FedWorld
from build.manifests import node, pod, thing
from shoal.client.item import Obj
from shoal.engine.cluster import Cluster
from shoal.engine.device_notation import HeldDevices
from shoal.engine.devices.kind import DevicePositions
from shoal.engine.events import PodBound
from shoal.engine.intake import Intake
from shoal.store.watched.held_positions import HeldPositions
from shoal.store.watched.pod_annotations import PodAnnotationFields

GPU = "nvidia.com/gpu"
GROUP = "runai-gpu-group"
TOLD = {"shoal.dev/devices": json.dumps({"c": {GPU: ["GPU-b"]}})}


def gpu_node(*uuids: str) -> Obj:
    made = node("n1", gpus=2)
    if uuids:
        told = json.dumps({"gpus": [{"uuid": uuid} for uuid in uuids]})
        made["metadata"]["annotations"] = {"shoal.dev/topology": told}
    return made


def holder(name: str, annotations: dict[str, str] = TOLD, **more: Any) -> Obj:
    return pod(name, on="n1", annotations=annotations, gpus=1, **more)


def gpu_slice(*uuids: str) -> Obj:
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {"type": {"string": "gpu"}, "uuid": {"string": uuid}, "index": {"int": index}},
        }
        for index, uuid in enumerate(uuids)
    ]
    spec = {
        "driver": "gpu.nvidia.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": devices,
    }
    return thing("resource.k8s.io/v1", "ResourceSlice", "n1-gpus", spec=spec)


def held(fed: FedWorld, intake: Intake) -> dict[str, tuple[int, ...]]:
    for event in fed.drain():
        intake.apply(event)
    grants = {key: holding.grant for key, holding in intake.cluster.pods.items()}
    return {key: grant.devices for key, grant in grants.items() if grant is not None}


@pytest.mark.parametrize("late", [gpu_node("GPU-a", "GPU-b"), gpu_slice("GPU-a", "GPU-b")], ids=["node", "slice"])
def test_a_node_that_names_its_devices_late_says_what_running_pods_hold(late: Obj) -> None:
    fed, intake = FedWorld(), Intake(Cluster())
    fed.put(gpu_node(), holder("a"))
    assert held(fed, intake) == {"default/a": (0,)}
    fed.put(late)
    assert fed.wakes > 0
    assert held(fed, intake) == {"default/a": (1,)}
    free = intake.cluster.free[0].copy()
    fed.put(late)
    assert fed.drain() == []
    assert (intake.cluster.free[0] == free).all()


def test_devices_that_change_places_are_held_where_they_are_now() -> None:
    fed, intake = FedWorld(), Intake(Cluster())
    other = {"shoal.dev/devices": json.dumps({"c": {GPU: ["GPU-a"]}})}
    fed.put(gpu_node("GPU-a", "GPU-b"), holder("a", other), holder("b"))
    assert held(fed, intake) == {"default/a": (0,), "default/b": (1,)}
    fed.put(gpu_node("GPU-b", "GPU-a"))
    assert held(fed, intake) == {"default/a": (1,), "default/b": (0,)}
    fresh, plain = Intake(Cluster()), FedWorld()
    plain.put(*fed.objects.values())
    held(plain, fresh)
    assert (fresh.cluster.free[0] == intake.cluster.free[0]).all()


def test_what_a_node_does_not_name_any_more_stays_held() -> None:
    fed, intake = FedWorld(), Intake(Cluster())
    fed.put(gpu_node("GPU-a", "GPU-b"), holder("a"))
    assert held(fed, intake) == {"default/a": (1,)}
    fed.put(gpu_node())
    assert held(fed, intake) == {"default/a": (1,)}


def test_devices_told_after_the_pod_was_bound_are_read_then() -> None:
    fed, intake = FedWorld(), Intake(Cluster())
    fed.put(gpu_node("GPU-a", "GPU-b"), holder("a", {}))
    assert held(fed, intake) == {"default/a": (0,)}
    fed.put(holder("a"))
    assert held(fed, intake) == {"default/a": (1,)}


def allocated(*ids: str) -> Obj:
    given = [{"name": GPU, "resources": [{"resourceID": one, "health": "Healthy"} for one in ids]}]
    return {"phase": "Running", "containerStatuses": [{"name": "c", "allocatedResourcesStatus": given}]}


def test_the_devices_that_a_kubelet_gave_to_a_pod_of_another_scheduler_are_held() -> None:
    fed, intake = FedWorld(), Intake(Cluster())
    fed.put(gpu_node("GPU-a", "GPU-b"), holder("a", {}, schedulerName="volcano"))
    assert held(fed, intake) == {"default/a": (0,)}
    fed.put(holder("a", {}, schedulerName="volcano", status=allocated("GPU-b")))
    assert held(fed, intake) == {"default/a": (1,)}
    fed.put(holder("a", {}, schedulerName="volcano", status={**allocated("GPU-b"), "hostIP": "10.0.0.1"}))
    assert fed.drain() == []


def test_the_devices_that_a_kubelet_gave_count_more_than_those_that_the_binding_named() -> None:
    fed, intake = FedWorld(), Intake(Cluster())
    fed.put(gpu_node("GPU-a", "GPU-b"), holder("a"))
    assert held(fed, intake) == {"default/a": (1,)}
    fed.put(holder("a", status=allocated("GPU-a")))
    assert held(fed, intake) == {"default/a": (0,)}
    fed.put(holder("a", status=allocated("unknown")))
    assert held(fed, intake) == {"default/a": (1,)}


def test_devices_of_other_plugins_are_no_gpus() -> None:
    fed, intake = FedWorld(), Intake(Cluster())
    given = {"name": "rdma/hca", "resources": [{"resourceID": "0", "health": "Healthy"}]}
    status = {"phase": "Running", "containerStatuses": [{"name": "c", "allocatedResourcesStatus": [given]}]}
    fed.put(gpu_node("GPU-a", "GPU-b"), holder("a", {"shoal.dev/devices": "1"}, status=status))
    assert held(fed, intake) == {"default/a": (1,)}


def test_a_group_of_pods_that_ended_leaves_its_number_to_others() -> None:
    fed = FedWorld()
    fed.put(gpu_node())
    fed.put(holder("a", {}, labels={GROUP: "g1"}), holder("b", {}, labels={GROUP: "g1"}))
    assert [event.positions for event in fed.heard(PodBound)] == [((0, 0),), ((0, 0),)]
    fed.drop(holder("a"))
    fed.put(holder("c", {}, labels={GROUP: "g2"}))
    assert [event.positions for event in fed.heard(PodBound)] == [((1, 0),)]
    fed.put(holder("b", {}, labels={GROUP: "g1"}, status={"phase": "Succeeded"}))
    fed.drain()
    fed.put(holder("d", {}, labels={GROUP: "g3"}))
    assert [event.positions for event in fed.heard(PodBound)] == [((0, 0),)]


def test_nothing_is_left_of_pods_that_came_and_went() -> None:
    held_positions, draw = HeldPositions(None), random.Random(7)
    there: dict[str, tuple[str, DevicePositions]] = {}
    most = 0
    for number in range(2000):
        key, on = f"pod-{number}", f"n{draw.randrange(3)}"
        words = (
            PodAnnotationFields({GROUP: f"g{number // 2}"}, {})
            if draw.random() < 0.5
            else PodAnnotationFields({}, {"shoal.dev/devices": str(draw.randrange(8))})
        )
        there[key] = on, held_positions.positions(key, on, words)
        if draw.random() < 0.2:
            # Read again, and nothing is counted twice.
            assert held_positions.positions(key, on, words, there[key][1]) == there[key][1]
        while len(there) > 20:
            gone = draw.choice(sorted(there))
            held_positions.release(gone, *there.pop(gone))
        most = max(most, len(held_positions))
    assert most <= 60
    for key, (on, positions) in there.items():
        held_positions.release(key, on, positions)
    assert len(held_positions) == 0


def test_a_name_keeps_its_number_until_its_last_holder_is_gone() -> None:
    named = HeldDevices()
    first = named.named("n1", ["x"])
    assert named.named("n1", ["y"]) == ((1, 0),)
    assert named.named("n1", ["x"]) == first
    named.release("n1", (), ["x"])
    assert named.named("n1", ["x"]) == first
    for _ in range(2):
        named.release("n1", (), ["x"])
    assert named.named("n1", ["z"]) == ((0, 0),)


@pytest.mark.parametrize("text", ["0," * 100_000, "0," * 5_000, "9" * 5_000, "first"])
def test_devices_that_cannot_be_read_are_told_once_on_the_pod_which_is_placed_all_the_same(text: str) -> None:
    fed, intake = FedWorld(), Intake(Cluster())
    fed.put(gpu_node("GPU-a", "GPU-b"), holder("a", {"shoal.dev/devices": text}))
    assert held(fed, intake) == {"default/a": (0,)}
    [trouble] = fed.world.take_troubles()
    assert (trouble.key, trouble.reason) == ("default/a", "InvalidAnnotation")
    assert trouble.message.startswith("metadata.annotations[shoal.dev/devices]: ")
    assert len(trouble.message) < 1024
    assert fed.world.take_troubles() == []


@pytest.mark.parametrize("text", ["", "0,1", "1:0", json.dumps({"c": {GPU: ["GPU-unknown"]}})])
def test_devices_that_can_be_read_are_no_trouble(text: str) -> None:
    fed, intake = FedWorld(), Intake(Cluster())
    fed.put(gpu_node("GPU-a", "GPU-b"), holder("a", {"shoal.dev/devices": text}))
    held(fed, intake)
    assert fed.world.take_troubles() == []
