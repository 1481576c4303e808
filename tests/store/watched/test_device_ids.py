"""Which ids a pod's annotation has, container by container, for every way to ask for devices."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.wire import dec_hook
from shoal.data.gpus import read_product
from shoal.data.mig import layout_of_product
from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.chosen_devices import Choice
from shoal.devices.mig_instances import Cut
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import COMPUTE, MEMORY, SLOTS, DeviceGrant
from shoal.engine.device_notation import UNKNOWN_IDS, HeldDevices, NodeIds, layout_of_node, node_ids, positions_of_pod
from shoal.engine.devices.kinds import kind_of
from shoal.engine.devices.node_devices import NodeDeviceState
from shoal.engine.dra.devices import DeviceFacts, SliceFacts
from shoal.engine.events import NodeFacts, NodeSeen, PodBound
from shoal.engine.from_api import ask_of_pod, node_facts_of
from shoal.engine.intake import Intake
from shoal.store.watched.device_ids import chosen_ids, ids_of
from shoal.units.errors import Where

Obj = dict[str, Any]
GPU, SHARED, MIG = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"
A100 = "NVIDIA-A100-SXM4-80GB"


def topology(count: int = 4, **more: Any) -> dict[str, str]:
    gpus = [{"index": at, "uuid": f"GPU-{at}", "numa": 0, "island": 0, "memoryMiB": 81920} for at in range(count)]
    return {"shoal.dev/topology": json.dumps({"gpus": gpus, **more})}


def pod(*containers: dict[str, int], init: tuple[Obj, ...] = (), **words: str) -> Pod:
    made = [container(f"c{at}", amounts) for at, amounts in enumerate(containers)]
    meta = {
        "name": "p",
        "namespace": "team",
        "annotations": {key.replace("_", "-"): text for key, text in words.items()},
    }
    obj = {"metadata": meta, "spec": {"containers": made, "initContainers": list(init)}}
    return msgspec.convert(obj, Pod, dec_hook=dec_hook)


def container(name: str, amounts: dict[str, int], **more: Any) -> Obj:
    return {"name": name, "resources": {"limits": {key: str(value) for key, value in amounts.items()}}, **more}


def chosen(one: Pod, grant: DeviceGrant | None, ids: NodeIds, taken: frozenset[str] = frozenset()) -> dict[str, Any]:
    return chosen_ids(one.spec, ask_of_pod(one).devices, grant, ids, taken)


def compute(*devices: int) -> DeviceGrant:
    return DeviceGrant(tuple((device, COMPUTE, 1000) for device in devices))


PLAIN = node_ids({}, topology())
SLICED = node_ids({}, topology(replicas={GPU: 3}))


def test_containers_side_by_side_get_different_gpus() -> None:
    assert chosen(pod({GPU: 2}, {}, {GPU: 1}), compute(1, 2, 3), PLAIN) == {
        "c0": {GPU: ["GPU-1", "GPU-2"]},
        "c2": {GPU: ["GPU-3"]},
    }


def test_an_init_container_passes_on_what_a_sidecar_before_it_does_not_keep() -> None:
    init = (container("side", {GPU: 1}, restartPolicy="Always"), container("warm", {GPU: 2}))
    assert chosen(pod({GPU: 1}, init=init), compute(0, 1, 2), PLAIN) == {
        "side": {GPU: ["GPU-0"]},
        "c0": {GPU: ["GPU-1"]},
        "warm": {GPU: ["GPU-1", "GPU-2"]},
    }


def test_a_fraction_is_its_first_containers() -> None:
    assert chosen(pod({}, {}, gpu_fraction="0.5"), DeviceGrant(((2, COMPUTE, 500),)), PLAIN) == {"c0": {GPU: ["GPU-2"]}}
    assert chosen(pod({}, gpu_memory="500"), DeviceGrant(((1, MEMORY, 500),)), PLAIN) == {"c0": {GPU: ["GPU-1"]}}


def test_virtual_gpus_are_dealt_by_number_and_one_where_only_memory_is_asked_for() -> None:
    asked = pod({GPU: 2, "nvidia.com/gpumem": 100}, {"nvidia.com/gpumem": 100})
    grant = DeviceGrant(tuple((device, plane, 1) for device in (0, 1, 3) for plane in (SLOTS, MEMORY)))
    assert chosen(asked, grant, PLAIN) == {"c0": {GPU: ["GPU-0", "GPU-1"]}, "c1": {GPU: ["GPU-3"]}}
    volcano = pod({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 100})
    assert chosen(volcano, DeviceGrant(((2, SLOTS, 1),)), PLAIN) == {"c0": {"volcano.sh/vgpu-number": ["GPU-2"]}}


def test_a_virtual_gpu_is_called_as_hamis_register_calls_it() -> None:
    listed = [{"id": f"GPU-h{at}", "count": 10, "devmem": 100, "health": at != 1} for at in range(3)]
    ids = node_ids({}, {"hami.io/node-nvidia-register": json.dumps(listed)})
    assert chosen(pod({"nvidia.com/gpumem": 5}), DeviceGrant(((1, SLOTS, 1),)), ids) == {"c0": {GPU: ["GPU-h2"]}}


def test_a_device_that_hami_gave_is_the_one_that_the_node_calls_so() -> None:
    listed = [{"id": f"GPU-h{at}", "count": 10, "devmem": 100} for at in range(3)]
    ids = node_ids({}, {"hami.io/node-nvidia-register": json.dumps(listed)})
    given = {"hami.io/vgpu-devices-allocated": "GPU-h2,NVIDIA,3000,0:;"}
    assert HeldDevices().positions("n1", given, {}, ids) == ((2, 0),)
    assert HeldDevices().positions("n1", given, {}) == ((0, 0),)


def test_replicas_that_others_hold_are_passed_over() -> None:
    grant = DeviceGrant(((0, SLOTS, 1), (1, SLOTS, 2)))
    taken = frozenset({"GPU-0::0", "GPU-1::1"})
    assert chosen(pod({GPU: 1}, {GPU: 2}), grant, SLICED, taken) == {
        "c0": {GPU: ["GPU-0::1"]},
        "c1": {GPU: ["GPU-1::0", "GPU-1::2"]},
    }
    renamed = node_ids({}, topology(replicas={SHARED: 3}))
    assert chosen(pod({SHARED: 1}), DeviceGrant(((3, SLOTS, 1),)), renamed) == {"c0": {SHARED: ["GPU-3::0"]}}


def mixed(strategy: str, replicas: int = 1) -> NodeIds:
    cuts = [{"profile": "1g.10gb", "start": at, "uuid": f"MIG-{at}"} for at in range(3)]
    gpus = [{"uuid": "GPU-0", "mig": cuts}, {"uuid": "GPU-1"}]
    told = {"gpus": gpus, **({"replicas": {MIG: replicas}} if replicas > 1 else {})}
    return node_ids({"nvidia.com/mig.strategy": strategy}, {"shoal.dev/topology": json.dumps(told)})


def test_fixed_instances_are_the_first_that_nobody_holds() -> None:
    asked = pod({MIG: 1}, {MIG: 1})
    assert chosen(asked, DeviceGrant(()), mixed("mixed"), frozenset({"MIG-1"})) == {
        "c0": {MIG: ["MIG-0"]},
        "c1": {MIG: ["MIG-2"]},
    }
    assert chosen(asked, DeviceGrant(()), mixed("mixed"), frozenset({"MIG-1", "MIG-2"})) == {}
    assert chosen(pod({MIG: 1}), DeviceGrant(()), mixed("mixed", 2), frozenset({"MIG-0::0"})) == {
        "c0": {MIG: ["MIG-1::0"]}
    }


def test_whole_gpus_are_numbered_past_those_that_are_cut() -> None:
    assert chosen(pod({GPU: 1}), compute(0), mixed("mixed")) == {"c0": {GPU: ["GPU-1"]}}
    single = node_ids(
        {"nvidia.com/mig.strategy": "single"},
        {"shoal.dev/topology": json.dumps({"gpus": [{"uuid": "G", "mig": [{"uuid": "M0"}, {"uuid": "M1"}]}]})},
    )
    assert chosen(pod({GPU: 1}), compute(1), single) == {"c0": {GPU: ["M1"]}}


def dynamic(cuts: list[Obj] | None = None) -> Node:
    gpus = [{"uuid": f"GPU-{at}", "mig": (cuts or []) if at == 0 else []} for at in range(2)]
    meta = {
        "name": "n1",
        "labels": {"nvidia.com/gpu.product": A100, "nvidia.com/gpu.count": "2"},
        "annotations": {"shoal.dev/mig-layout": "dynamic", "shoal.dev/topology": json.dumps({"gpus": gpus})},
    }
    obj = {"metadata": meta, "status": {"allocatable": {"cpu": "8", "memory": "64Gi"}}}
    return msgspec.convert(obj, Node, dec_hook=dec_hook)


def ids_on(node: Node) -> NodeIds:
    return node_ids(node.metadata.labels, node.metadata.annotations)


def test_instances_that_are_to_be_cut_are_named_by_place_and_found_again_when_they_are_cut() -> None:
    asked = pod({MIG: 1}, {"nvidia.com/mig-3g.40gb": 1}, {MIG: 2})
    demand = ask_of_pod(asked).devices
    assert demand is not None
    cluster = Cluster()
    intake = Intake(cluster)
    intake.apply(NodeSeen(node_facts_of(dynamic())))
    grant = kind_of(demand).tightest(NodeDeviceState(cluster.devices, 0), demand)
    assert grant is not None
    found = chosen(asked, grant, ids_on(dynamic()))
    assert [len(found[name][resource]) for name, resource in (("c0", MIG), ("c2", MIG))] == [1, 2]
    facts = layout_of_product(read_product(A100).name)
    assert facts is not None
    positions = positions_of_pod({"shoal.dev/devices": json.dumps(found)}, Where(), ids_on(dynamic()))
    intake.apply(PodBound("team/p", ask_of_pod(asked), "n1", positions=positions))
    held = cluster.pods["team/p"].grant
    assert held is not None
    assert sorted(held.parts) == sorted(grant.parts)
    # The agent cut them meanwhile: they have ids, and those are written from now on.
    profile = facts.profile("1g.10gb")
    assert profile is not None
    cut = [{"profile": "1g.10gb", "start": profile.starts[0], "uuid": "MIG-a"}]
    later = ids_on(dynamic(cut))
    assert later.id_of(0, profile.starts[0]) == "MIG-a"
    assert later.position_of("MIG-a") == (0, profile.starts[0])
    assert later.position_of(f"0:{profile.starts[0]}") == (0, profile.starts[0])


def test_a_kubelet_finds_an_instance_by_its_place() -> None:
    facts = layout_of_product(read_product(A100).name)
    profile = facts.profile("1g.10gb") if facts is not None else None
    assert profile is not None
    devices = [
        PhysicalDevice(f"MIG-{at}", MIG, f"MIG-{at}", 1, 0, 0, 1, cut=Cut(1, profile, at, at, f"MIG-{at}", 1))
        for at in (0, 4)
    ]
    noted = {"metadata": {"annotations": {"shoal.dev/devices": json.dumps({"main": {MIG: ["1:4"]}})}}}
    assert Choice(noted).wanted("main", MIG, 1, devices) == [devices[1]]
    assert Choice(noted).wanted("main", MIG, 1, devices[:1]) == "1:4"


def test_a_gpu_that_does_not_work_keeps_its_number_and_serves_nobody() -> None:
    told = json.dumps({"gpus": [{"uuid": f"GPU-{at}", "unhealthy": at == 1} for at in range(4)]})
    words = {"shoal.dev/topology": told}
    found = layout_of_node({}, words, {GPU: 3}, Where())
    assert (found.gpus, found.layout.broken) == (4, (1,))
    assert node_ids({}, words).id_of(2) == "GPU-2"
    # The words are older than what is advertised: it has come back.
    assert layout_of_node({}, words, {GPU: 4}, Where()).layout.broken == ()
    cluster = Cluster()
    Intake(cluster).apply(NodeSeen(NodeFacts("n1", {}, gpus=4, layout=found.layout)))
    demand = ask_of_pod(pod({GPU: 2})).devices
    assert demand is not None
    grant = kind_of(demand).tightest(NodeDeviceState(cluster.devices, 0), demand)
    assert grant is not None
    assert grant.devices == (0, 2)
    more = ask_of_pod(pod({GPU: 4})).devices
    assert more is not None
    assert kind_of(more).tightest(NodeDeviceState(cluster.devices, 0), more) is None


def test_instances_of_a_gpu_that_does_not_work_are_not_chosen() -> None:
    gpus = [
        {"uuid": f"G{at}", "unhealthy": at == 0, "mig": [{"profile": "1g.10gb", "uuid": f"M{at}"}]} for at in (0, 1)
    ]
    ids = node_ids({"nvidia.com/mig.strategy": "mixed"}, {"shoal.dev/topology": json.dumps({"gpus": gpus})})
    assert chosen(pod({MIG: 1}), DeviceGrant(()), ids) == {"c0": {MIG: ["M1"]}}


def test_without_names_devices_go_by_number() -> None:
    assert chosen(pod({GPU: 2}), compute(0, 3), UNKNOWN_IDS) == {"c0": {GPU: ["0", "3"]}}
    assert chosen(pod({GPU: 2}), DeviceGrant(((2, SLOTS, 2),)), UNKNOWN_IDS) == {"c0": {GPU: ["2::0", "2::1"]}}


def test_names_come_from_the_slices_of_the_node_where_it_says_nothing_itself() -> None:
    def device(name: str, **attributes: Any) -> DeviceFacts:
        told = {
            f"gpu.nvidia.com/{key}": ("string" if isinstance(value, str) else "int", value)
            for key, value in attributes.items()
        }
        return DeviceFacts(name, attributes=told)

    piece = SliceFacts(
        "s",
        "gpu.nvidia.com",
        "n1",
        (
            device("gpu-1", type="gpu", uuid="GPU-b", index=1),
            device("gpu-0", type="gpu", uuid="GPU-a", index=0),
            device("mig", type="mig", uuid="M"),
        ),
    )
    assert ids_of(UNKNOWN_IDS, [piece]).numbers == ("GPU-a", "GPU-b")
    assert ids_of(PLAIN, [piece]) is PLAIN
    assert ids_of(UNKNOWN_IDS) is UNKNOWN_IDS


@pytest.mark.parametrize("text", ["{", '{"gpus": 3}', "[]", '{"gpus":[{"uuid":1}]}'])
def test_a_topology_that_cannot_be_read_names_nothing(text: str) -> None:
    assert node_ids({}, {"shoal.dev/topology": text}) is UNKNOWN_IDS


@pytest.mark.parametrize("text", ["{", '{"main": 3}', '{"main":{"nvidia.com/gpu":["GPU-gone","x"]}}'])
def test_ids_that_nobody_knows_hold_nothing(text: str) -> None:
    assert positions_of_pod({"shoal.dev/devices": text}, Where(), PLAIN) == ()
