"""Determines which containers of a pod request which device resources.

Pods of one template have equal requests, so the result for one is cached for the others. Rejected: decoding each pod
completely, which takes as long as all other work to bind it.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from shoal.api.container import Container
from shoal.api.pod import Pod, PodSpec
from shoal.client.item import Item
from shoal.client.kind import PODS
from shoal.store.watched.reading import value_of

_NOTHING = Raw()
_MOST = 4096


class _DemandingContainer(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    resources: Raw = _NOTHING
    restart_policy: str | None = None


class _DemandingPodSpec(msgspec.Struct, rename="camel", gc=False):
    containers: tuple[_DemandingContainer, ...] = ()
    init_containers: tuple[_DemandingContainer, ...] | None = None


class _DemandingPod(msgspec.Struct, gc=False):
    spec: _DemandingPodSpec


_pods = msgspec.json.Decoder(_DemandingPod)


class DeviceDemands:
    def __init__(self) -> None:
        self._known: dict[object, PodSpec] = {}

    def of(self, item: Item) -> PodSpec:
        """The resource fields of the pod's containers."""
        spec = _pods.decode(item.data).spec
        key = _key(spec.containers), _key(spec.init_containers or ())
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            whole = value_of(PODS, item, Pod).spec
            found = self._known[key] = PodSpec(
                containers=tuple(map(_bare, whole.containers)),
                init_containers=tuple(map(_bare, whole.init_containers)),
            )
        return found


def _key(containers: tuple[_DemandingContainer, ...]) -> tuple[object, ...]:
    return tuple((one.name, bytes(one.resources), one.restart_policy) for one in containers)


def _bare(container: Container) -> Container:
    return Container(name=container.name, resources=container.resources, restart_policy=container.restart_policy)
