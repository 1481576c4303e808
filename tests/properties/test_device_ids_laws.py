"""What the engine decides on devices is what the node's kubelet gives, and what is read again after a restart."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.gpu_pods import device_manager
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.wire import dec_hook
from shoal.devices.pod_refusal import Refused
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import DeviceGrant, MigTiles
from shoal.engine.device_notation import UNKNOWN_IDS, NodeIds, positions_of_pod
from shoal.engine.devices.kinds import kind_of
from shoal.engine.devices.node_devices import NodeDeviceState
from shoal.engine.events import NodeSeen, PodBound
from shoal.engine.from_api import ask_of_pod, node_facts_of
from shoal.engine.from_api.held import ids_of_nodes
from shoal.engine.intake import Intake
from shoal.store.watched.device_ids import chosen_ids, devices_annotation
from shoal.units.errors import UserError, Where

Obj = dict[str, Any]
GPU, SHARED, MIG = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"
DEVICES = "shoal.dev/devices"

PLAIN = ("p5.48xlarge", "h100-pcie-box-4[numa-policy=restricted]", "h100-nvl-box-4")
REPLICATED = ("g5.12xlarge[time-slicing=3]", "g5.12xlarge[mps=4,many-per-request,rename]", "g5.12xlarge[mps=4]")
CUT = ("dgx-a100-80[mig=all-balanced]", "dgx-a100-40[mig=all-1g.5gb,strategy=single]", "dgx-a100-80[mig=all-1g.10gb]")


def node_of(spec: str, broken: Iterable[int] = ()) -> tuple[DeviceManager, Node]:
    """A machine, some of whose GPUs do not work, and its Node object."""
    machine = device_manager(spec)
    for gpu in broken:
        machine.fail(gpu, 79)
    amounts = {name: str(one.allocatable) for name, one in machine.resources().items()}
    meta = {
        "name": "n1",
        "labels": {name: text for name, text in machine.labels().items() if text is not None},
        "annotations": {name: text for name, text in machine.annotations().items() if text is not None},
    }
    obj = {"metadata": meta, "status": {"allocatable": {"cpu": "96", "memory": "1Ti", "pods": "110", **amounts}}}
    return machine, msgspec.convert(obj, Node, dec_hook=dec_hook)


def asking(name: str, containers: list[dict[str, int]], init: list[tuple[dict[str, int], bool]], words: Obj) -> Obj:
    def made(label: str, amounts: dict[str, int], **more: Any) -> Obj:
        return {"name": label, "resources": {"limits": {key: str(amount) for key, amount in amounts.items()}}, **more}

    inits = [
        made(f"i{at}", amounts, **({"restartPolicy": "Always"} if stays else {}))
        for at, (amounts, stays) in enumerate(init)
    ]
    spec = {"containers": [made(f"c{at}", amounts) for at, amounts in enumerate(containers)], "initContainers": inits}
    return {"metadata": {"name": name, "namespace": "team", "uid": name, "annotations": dict(words)}, "spec": spec}


amounts = st.integers(0, 2)


def resources_of(spec: str) -> list[str]:
    return sorted(device_manager(spec).resources())


@st.composite
def worlds(draw: st.DrawFn, specs: tuple[str, ...], *, with_virtual: bool) -> tuple[str, list[Obj]]:
    spec = draw(st.sampled_from(specs))
    known = resources_of(spec)
    pods = []
    for number in range(draw(st.integers(1, 6))):
        resource = draw(st.sampled_from(known))
        others = ["fraction", "memory", *(["virtual"] if with_virtual else [])]
        shape = draw(st.sampled_from(["counted", "counted", "counted", *others]))
        words: Obj = {}
        containers: list[dict[str, int]] = [{}]
        init: list[tuple[dict[str, int], bool]] = []
        if shape == "fraction":
            words = {"gpu-fraction": draw(st.sampled_from(["0.3", "0.5", "1"]))}
            if draw(st.booleans()):
                words["gpu-fraction-num-devices"] = "2"
        elif shape == "memory":
            words = {"gpu-memory": "4000"}
        else:
            containers = [{resource: amount} for amount in draw(st.lists(amounts, min_size=1, max_size=3))]
            init = [({resource: draw(amounts)}, draw(st.booleans())) for _ in range(draw(st.integers(0, 2)))]
            if shape == "virtual" and resource == GPU and not init:
                containers = [{GPU: 1, "nvidia.com/gpumem": 3000} for _ in containers]
        pods.append(asking(f"p{number}", containers, init, words))
    return spec, pods


class Scene:
    def __init__(self, node: Node) -> None:
        self.cluster = Cluster()
        self.intake = Intake(self.cluster)
        self.intake.apply(NodeSeen(node_facts_of(node)))

    def bind(self, pod: Obj, ids: NodeIds) -> DeviceGrant | None:
        """As the pod says what it holds."""
        read = msgspec.convert(pod, Pod, dec_hook=dec_hook)
        positions = positions_of_pod(read.metadata.annotations, Where(), ids)
        self.intake.apply(PodBound(read.metadata.key, ask_of_pod(read), "n1", positions=positions))
        return self.cluster.pods[read.metadata.key].grant


def place(
    pods: list[Obj], node: Node, machine: DeviceManager, *, is_asked: bool, ids: NodeIds | None = None
) -> tuple[Scene, list[tuple[Obj, DeviceGrant]]]:
    """All that fit, decided upon by the engine, written down and shown to the kubelet."""
    scene = Scene(node)
    ids = ids or ids_of_nodes([node])["n1"]
    taken: set[str] = set()
    held: list[tuple[Obj, DeviceGrant]] = []
    for pod in pods:
        read = msgspec.convert(pod, Pod, dec_hook=dec_hook)
        try:
            ask = ask_of_pod(read)
        except UserError:
            continue
        demand = ask.devices
        if demand is None:
            continue
        grant = kind_of(demand).tightest(NodeDeviceState(scene.cluster.devices, 0), demand)
        if grant is None:
            continue
        chosen = chosen_ids(read.spec, demand, grant, ids, taken)
        if not chosen:
            # Fixed instances are counted elsewhere.
            assert isinstance(demand, MigTiles)
            continue
        pod["metadata"]["annotations"][DEVICES] = devices_annotation(chosen)
        if is_asked:
            granted = machine.admit(pod)
            if isinstance(granted, Refused):
                # What the kubelet counts otherwise than the engine is not for ids to mend; devices it must have.
                assert "chosen" not in granted.message, granted
                del pod["metadata"]["annotations"][DEVICES]
                continue
            given = {(one.container, one.resource): one.device_ids for one in granted}
            for (container, resource), devices in given.items():
                assert tuple(chosen[container][resource]) == devices
        taken |= {each for by_resource in chosen.values() for devices in by_resource.values() for each in devices}
        scene.intake.apply(PodBound(read.metadata.key, ask, "n1", grant))
        held.append((pod, grant))
    return scene, held


broken_gpus: st.SearchStrategy[frozenset[int]] = st.frozensets(st.integers(0, 3), max_size=3)


@given(worlds((*PLAIN, *REPLICATED, *CUT), with_virtual=False), broken_gpus)
@settings(max_examples=examples(80), deadline=None)
def test_the_kubelet_gives_what_was_chosen(world: tuple[str, list[Obj]], broken: frozenset[int]) -> None:
    spec, pods = world
    machine, node = node_of(spec, broken)
    place(pods, node, machine, is_asked=True)


@given(worlds((*PLAIN, *REPLICATED, *CUT), with_virtual=True), broken_gpus, st.randoms())
@settings(max_examples=examples(80), deadline=None)
def test_after_a_restart_every_pod_holds_what_it_held(
    world: tuple[str, list[Obj]], broken: frozenset[int], draw: random.Random
) -> None:
    """Also where some GPUs broke meanwhile."""
    spec, pods = world
    machine, node = node_of(spec)
    before, held = place(pods, node, machine, is_asked=False)
    _, node = node_of(spec, broken)
    before.intake.apply(NodeSeen(node_facts_of(node)))
    after = Scene(node)
    ids = ids_of_nodes([node])["n1"]
    draw.shuffle(held)
    for pod, grant in held:
        found = after.bind(pod, ids)
        assert found is not None
        assert sorted(found.parts) == sorted(grant.parts)
    for was, now in zip(before.cluster.devices.planes, after.cluster.devices.planes, strict=True):
        assert (was == now).all()


@given(worlds(PLAIN[:1], with_virtual=True), st.randoms())
@settings(max_examples=examples(20), deadline=None)
def test_devices_without_names_are_found_again_by_number(world: tuple[str, list[Obj]], draw: random.Random) -> None:
    spec, pods = world
    machine, node = node_of(spec)
    _, held = place(pods, node, machine, is_asked=False, ids=UNKNOWN_IDS)
    after = Scene(node)
    draw.shuffle(held)
    for pod, grant in held:
        found = after.bind(pod, UNKNOWN_IDS)
        assert found is not None
        assert sorted(found.parts) == sorted(grant.parts)
