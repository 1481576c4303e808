"""Removes the protection finalizers of claims that no pod uses, and of volumes that no claim uses.

The API server is asked for the pods of a claim before the finalizer is removed: two watches have no common order, so a
pod may exist that the cache does not have yet, and the removal cannot be undone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import field

from shoal.api.wire import ApiStruct
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import PODS, VOLUME_CLAIMS, VOLUMES, Kind
from shoal.client.volumes.values import Volume, VolumeClaim
from shoal.embedded.controllers.volumes.context import VolumeContext

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"


class _Source(ApiStruct, frozen=True):
    claim_name: str = ""


class _PodVolume(ApiStruct, frozen=True):
    name: str = ""
    persistent_volume_claim: _Source | None = None
    ephemeral: dict[str, Any] | None = None


class _MountingPodSpec(ApiStruct, frozen=True):
    node_name: str = ""
    volumes: tuple[_PodVolume, ...] = ()


class _MountingPod(ApiStruct, frozen=True):
    spec: _MountingPodSpec = field(default_factory=_MountingPodSpec)


class Protection:
    def __init__(self, context: VolumeContext) -> None:
        self._context = context
        self._users = context.runtime.informers.of(PODS).index("claims in use", _claims_in_use)

    async def claim(self, claim: VolumeClaim) -> None:
        is_waiting = claim.metadata.is_terminating and CLAIM_FINALIZER in claim.metadata.finalizers
        if is_waiting and self._users.count("/".join(claim.key)) == 0 and not await self._has_users(claim.key):
            await self._release(VOLUME_CLAIMS, self._context.claim_obj(claim), CLAIM_FINALIZER)

    async def volume(self, volume: Volume) -> None:
        is_waiting = volume.metadata.is_terminating and VOLUME_FINALIZER in volume.metadata.finalizers
        if is_waiting and volume.status.phase != "Bound":
            await self._release(VOLUMES, self._context.volume_obj(volume), VOLUME_FINALIZER)

    async def _has_users(self, claim: Key) -> bool:
        """Whether a pod uses the claim. A pod that is found will also appear in the cache, and wake the claim."""
        pods = await self._context.api.list(PODS, claim[0])
        return any(claim in claims_of(item) for item in pods.items)

    async def _release(self, kind: Kind, obj: Obj | None, finalizer: str) -> None:
        if obj is None:
            return
        finalizers = [one for one in obj["metadata"]["finalizers"] if one != finalizer]
        obj["metadata"]["finalizers"] = finalizers
        left = await self._context.api.update(kind, obj)
        if not finalizers:
            informer = self._context.runtime.informers.of(kind)
            informer.learn_gone(left.key, left.uid)


def claims_of(item: Item) -> Iterator[Key]:
    """The claims of a pod that has a node; a pod without a node does not protect its claims."""
    if b'"persistentVolumeClaim"' not in item.data and b'"ephemeral"' not in item.data:
        return
    spec = item.read(_MountingPod).spec
    for volume in spec.volumes if spec.node_name else ():
        if volume.persistent_volume_claim is not None:
            yield (item.namespace, volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            yield (item.namespace, f"{item.name}-{volume.name}")


def _claims_in_use(item: Item) -> list[str]:
    return ["/".join(key) for key in claims_of(item)]
