"""Computes which layers of GPU software work on a node, from the component pods on it.

A layer works while all main containers of a pod that adds it are ready, and the layers below it work. A preinstalled
layer always works. Pods from before the start of this process count from the beginning, so that a restarted fleet does
not take GPUs away in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from shoal.client.kubelet.pod_facts import PodFacts
from shoal.client.kubelet.pod_run import PodRun
from shoal.embedded.gpus.driver import read_driver_image
from shoal.embedded.gpus.node_software import NodeSoftware, first_software
from shoal.embedded.kubelets.gpu_components.component_pod import ComponentPod, component_pod, driver_image, is_driver
from shoal.embedded.kubelets.gpu_components.table import GpuComponent, component_of
from shoal.embedded.machines.gpu_software import GpuSoftware, Layer


class _Known(msgspec.Struct, frozen=True):
    component: GpuComponent
    driver: str
    """The version that it loads, if it is a driver pod."""


class NodeLayers:
    def __init__(self, software: GpuSoftware) -> None:
        self._first = self.software = first_software(software)
        self.faults: dict[str, str] = {}
        """The kind of fault by component."""
        self._pods: dict[str, _Known] = {}
        self._earlier: dict[str, PodRun] = {}
        """Pods that this process has not taken over yet."""

    def recall(self, pods: Iterable[tuple[PodRun, PodFacts]]) -> None:
        """Count pods that ran before this process."""
        for run, facts in pods:
            if self.note(run, facts):
                self._earlier[run.uid] = run
        self.follow({})

    def note(self, run: PodRun, facts: PodFacts) -> bool:
        """Whether the pod is one of a component."""
        component = component_of(facts.metadata.labels)
        if component is None:
            self._pods.pop(run.uid, None)
            return False
        version = read_driver_image(driver_image(facts)).version if is_driver(component) else ""
        self._pods[run.uid] = _Known(component, version)
        return True

    def pod(self, facts: PodFacts) -> ComponentPod | None:
        return component_pod(facts, self.software, self.faults)

    def follow(self, runs: Mapping[str, PodRun]) -> bool:
        """Compute the layers again; returns whether they have changed. `runs`: all pods of the node."""
        present = {uid: run for uid, run in self._earlier.items() if uid not in runs} | dict(runs)
        working = [known for uid, known in self._pods.items() if uid in present and _works(present[uid])]
        layers = set(self._first.layers)
        driver = self.software.driver
        left: list[_Known] = working
        while left:
            added = [known for known in left if layers.issuperset(known.component.needs)]
            if not added:
                break
            left = [known for known in left if known not in added]
            for known in added:
                layers.update(known.component.adds)
                driver = known.driver or driver
        found = NodeSoftware(_frozen(layers), driver)
        changed, self.software = found != self.software, found
        return changed

    def forget(self, uid: str) -> bool:
        """The pod is gone; returns whether it was one of a component."""
        self._earlier.pop(uid, None)
        return self._pods.pop(uid, None) is not None

    def uids(self) -> tuple[str, ...]:
        return tuple(self._pods)


def _works(run: PodRun) -> bool:
    return not run.is_over and all(one.is_alive and one.is_ready for one in run.of("main"))


def _frozen(layers: set[Layer]) -> frozenset[Layer]:
    return frozenset(layers)
