"""The scheduler's choice over the kubelet's real interface, which names no pod."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from build.fake_kubelet import FakeKubelet, fake_kubelet
from build.gpu_pods import GPU, container, device_manager, pod_of
from shoal.agent.plugin.device_plugin import DevicePlugin, NodeParts, PluginSettings
from shoal.agent.plugin.scheduler_choice import SchedulerChoice
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.plugin_flags import PluginFlags
from shoal.devices.waiting_requests import Held, PodName, annotation_of
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.simulated_driver import SimulatedDriver

Obj = dict[str, Any]
_PODS = 300


class Node:
    """A node with 8 GPUs, whose scheduler chooses devices, and whose kubelet admits pods in an order of its own."""

    def __init__(self, kubelet: FakeKubelet, folder: Path) -> None:
        self.kubelet = kubelet
        self.choice = SchedulerChoice(wait_s=0)
        manager = device_manager("dgx-h100")
        self.ids = [slot.uuid for slot in manager.machine.gpus]
        driver = SimulatedDriver(manager, DcgmExporter(manager, booted_s=0.0), lambda: 0.0)
        parts = NodeParts(driver, lambda *_: True, lambda: 0.0)
        self.plugin = DevicePlugin(folder, parts, PluginSettings(PluginFlags(), PluginConfig()), self.choice)
        self.plugin.check()
        kubelet.until(lambda: kubelet.allocatable() == 8)
        self.pods: dict[str, Obj] = {}
        self.chosen: dict[str, list[str]] = {}

    def bind(self, name: str, ids: list[str], second: int) -> None:
        """Bound by the scheduler to these devices; an empty list stands for a pod without a choice of one device."""
        choice = {"devices": annotation_of({"main": {GPU: ids}})} if ids else {}
        pod = pod_of(name, [container("main", len(ids) or 1)], annotations=choice)
        pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"
        self.pods[name], self.chosen[name] = pod, ids
        self.choice.set_pods(self.pods.values())

    def admit(self, name: str) -> list[str]:
        self.kubelet.allocate(name, len(self.chosen[name]) or 1)
        return self.kubelet.held[name][GPU]

    def end(self, name: str) -> None:
        self.kubelet.held.pop(name, None)
        del self.pods[name], self.chosen[name]
        self.choice.set_pods(self.pods.values())

    def holders(self) -> dict[PodName, Held]:
        return {PodName("team", name): {"main": dict(held)} for name, held in self.kubelet.held.items()}


@pytest.fixture
def node() -> Iterator[Node]:
    with TemporaryDirectory(prefix="plugins-") as name, fake_kubelet(Path(name)) as kubelet:
        found = Node(kubelet, Path(name))
        yield found
        found.plugin.stop()


def test_pods_get_their_choice_in_the_order_in_which_they_were_bound(node: Node) -> None:
    node.bind("first", [node.ids[5]], 1)
    node.bind("second", [node.ids[2]], 2)
    assert node.admit("first") == [node.ids[5]]
    assert node.admit("second") == [node.ids[2]]
    assert node.choice.verify(node.holders()) == ()


def test_pods_that_the_kubelet_admits_in_another_order_exchange_their_devices_and_are_reported(node: Node) -> None:
    node.bind("first", [node.ids[5]], 1)
    node.bind("second", [node.ids[2]], 2)
    assert node.admit("second") == [node.ids[5]]
    assert node.admit("first") == [node.ids[2]]
    actual = {one.pod.name: one.devices["main"][GPU] for one in node.choice.verify(node.holders())}
    assert actual == {"first": (node.ids[2],), "second": (node.ids[5],)}


def test_a_pod_without_a_choice_leaves_the_devices_of_the_others(node: Node) -> None:
    node.bind("unchosen", [], 1)
    node.bind("second", node.ids[:6], 2)
    assert node.admit("unchosen")[0] in node.ids[6:]
    assert node.admit("second") == node.ids[:6]


def test_a_pod_without_a_choice_gets_a_device_of_another_pod_if_there_is_no_other(node: Node) -> None:
    node.bind("unchosen", [], 1)
    node.bind("second", node.ids, 2)
    assert node.admit("unchosen")[0] in node.ids


@pytest.mark.parametrize("seed", [1, 2])
def test_many_pods_get_exactly_their_choice_while_others_come_and_go(node: Node, seed: int) -> None:
    random = Random(seed)
    for number in range(_PODS):
        while len(free := sorted({*node.ids} - {one for ids in node.chosen.values() for one in ids})) < 4:
            node.end(random.choice(sorted(node.pods)))
        name, ids = f"p{number}", random.sample(free, random.randint(1, 4))
        node.bind(name, ids, number)
        assert sorted(node.admit(name)) == sorted(ids)
        if number % 10 == 0:
            assert node.choice.verify(node.holders()) == ()


@pytest.mark.parametrize("seed", [1, 2])
def test_in_any_order_of_admission_no_device_is_given_twice_and_all_differences_are_reported(
    node: Node, seed: int
) -> None:
    random = Random(seed)
    for number in range(_PODS // 4):
        for name in sorted(node.pods):
            node.end(name)
        left = random.sample(node.ids, 8)
        names: list[str] = []
        while left:
            size = min(random.randint(1, 3), len(left))
            names.append(f"p{number}-{len(names)}")
            node.bind(names[-1], [left.pop() for _ in range(size)], number)
        for name in random.sample(names, len(names)):
            node.admit(name)
        given = {name: node.kubelet.held[name][GPU] for name in names}
        assert sorted(one for ids in given.values() for one in ids) == sorted(node.ids)
        reported = {one.pod.name for one in node.choice.verify(node.holders())}
        assert reported == {name for name, ids in given.items() if {*ids} != {*node.chosen[name]}}
        assert node.choice.is_certain(node.holders())
