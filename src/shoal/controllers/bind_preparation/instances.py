"""Asks a node for the MIG instances of a pod, and waits until the node advertises them.

The kubelet of a node rejects a pod whose devices do not exist, so the pod is bound afterwards. The request is an
annotation of the Node with the pod's uid in its name, so that requests of several pods do not overwrite each other.

Guarantees: the request is removed when the wait ends, however it ends; requests that a killed process has left are
removed by the next request for the node. Instances that exist are not asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from shoal.api.partial import LabeledMeta
from shoal.client.context import Context
from shoal.client.kind import NODES, PODS
from shoal.client.port import Patch
from shoal.controllers.bind_preparation.users import User
from shoal.devices.mig_demand import WantedPlace, wanted_annotation, written_places
from shoal.devices.names import MIG_PREFIX, OWN_MIG_WANTED
from shoal.engine.device_notation import NodeIds
from shoal.units.errors import ConflictError, ShoalError

_LONGEST_S, _POLL_S = 60.0, 0.1


class _NodeStatus(msgspec.Struct, gc=False):
    allocatable: dict[str, str] = {}


class _AdvertisingNode(msgspec.Struct, gc=False):
    metadata: LabeledMeta = msgspec.field(default_factory=LabeledMeta)
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


class MigInstances:
    def __init__(self, context: Context, ids: Callable[[str], NodeIds]) -> None:
        """`ids`: the devices that a node has reported."""
        self._api = context.api
        self._clock = context.clock
        self._nodes = context.informers.of(NODES)
        self._pods = context.informers.of(PODS)
        self._ids = ids

    async def ready(self, user: User, node: str, places: Sequence[WantedPlace]) -> None:
        """Returns when the node advertises an instance at each place."""
        if self._is_advertised(node, places):
            return
        name = wanted_annotation(user.uid)
        await self._annotate(node, {**self._left_over(node), name: written_places(places)})
        ends_s = self._clock.seconds() + _LONGEST_S
        try:
            while not self._is_advertised(node, places):
                user.check()
                if self._clock.seconds() >= ends_s:
                    what = f"node {node} has not created the MIG instances {written_places(places)}"
                    raise ConflictError(f"{what} in {_LONGEST_S:.0f} s; see the Events of the node")
                await self._clock.sleep(_POLL_S)
        finally:
            await self._withdraw(node, name)

    async def _withdraw(self, node: str, name: str) -> None:
        try:
            await self._annotate(node, {name: None})
        except ShoalError:
            # It only reserves the places; the next request for this node removes it.
            return

    async def _annotate(self, node: str, differences: dict[str, str | None]) -> None:
        await self._api.patch(NODES, "", node, Patch("merge", {"metadata": {"annotations": differences}}))

    def _is_advertised(self, node: str, places: Sequence[WantedPlace]) -> bool:
        item = self._nodes.get("", node)
        if item is None:
            return False
        profiles = self._ids(node).profiles
        if any(profiles.get((one.gpu, one.start)) != _plain(one.profile) for one in places):
            return False
        # The node reports its instances before its kubelet counts them.
        present = Counter(profiles.values())
        allocatable = item.read(_AdvertisingNode).status.allocatable
        return all(
            _number(allocatable.get(MIG_PREFIX + name, "")) >= present[name]
            for name in {_plain(one.profile) for one in places}
        )

    def _left_over(self, node: str) -> dict[str, str | None]:
        """Requests for pods that no longer wait."""
        item = self._nodes.get("", node)
        annotations = item.read(_AdvertisingNode).metadata.annotations if item is not None else {}
        requests = [name for name in annotations if name.startswith(OWN_MIG_WANTED)]
        if not requests:
            return {}
        waiting = {wanted_annotation(pod.uid) for pod in self._pods if b'"nodeName"' not in pod.data}
        return {name: None for name in requests if name not in waiting}


def _plain(profile: str) -> str:
    return profile.replace("+", ".")


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
