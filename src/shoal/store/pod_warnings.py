"""Warns about questionable fields of pods in manifests that do not prevent scheduling.

Each warning appears once for all pods of one controller, because they share its template.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from shoal.api.pod import Pod, PodSpec
from shoal.engine.asks import Ask
from shoal.engine.device_notation import tiles_fault
from shoal.engine.domains.reading import anti_affinity_that_misses_itself
from shoal.store.inventory import Placed
from shoal.units.errors import UserError, Where


class PodWarnings:
    def __init__(self, products: Collection[str]) -> None:
        """`products`: the GPU products on the labels of nodes."""
        self._products = products
        self._reported: dict[tuple[str, ...], tuple[str, int]] = {}

    def look_at(self, placed: Placed[Pod], ask: Ask) -> None:
        self._look_at_anti_affinity(placed)
        self._look_at_profiles(placed, ask)

    def lines(self) -> Iterator[str]:
        for line, more in self._reported.values():
            yield line if more == 0 else f"{line}; the same in {more:,} more of its pods"

    def _look_at_anti_affinity(self, placed: Placed[Pod]) -> None:
        pod = placed.value
        for path, _ in anti_affinity_that_misses_itself(pod.spec, pod.metadata.labels):
            where = placed.at(path)
            self._warn_once(
                pod, UserError("does not select the pod itself, so its replicas do not avoid each other", where=where)
            )

    def _look_at_profiles(self, placed: Placed[Pod], ask: Ask) -> None:
        """MIG profiles that no present GPU supports: the pod waits without effect."""
        pod = placed.value
        fault = tiles_fault(ask.devices, self._products, lambda name: placed.at(_asked_at(pod.spec, name)))
        if fault is not None:
            self._warn_once(pod, fault)

    def _warn_once(self, pod: Pod, fault: UserError) -> None:
        owner = pod.metadata.controller()
        maker = (owner.kind, owner.name) if owner is not None else ("Pod", pod.metadata.name)
        like = (pod.metadata.namespace, *maker, fault.where.path, fault.what)
        line, more = self._reported.get(like, (str(fault), -1))
        self._reported[like] = line, more + 1


def _asked_at(spec: PodSpec, resource: str) -> str:
    """The field in which the first container requests the resource."""
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            for side, amounts in (("limits", container.resources.limits), ("requests", container.resources.requests)):
                if resource in amounts:
                    return Where(path=f"spec.{kind}[{index}].resources.{side}").key(resource).path
    return "spec"
