"""Reconciles PersistentVolumes: available, bound, released, and then retained or deleted by their reclaim policy."""

from __future__ import annotations

from shoal.client.item import Obj
from shoal.client.kind import VOLUME_CLAIMS, VOLUMES
from shoal.client.refusals import NotFoundError
from shoal.client.volumes.values import Volume
from shoal.embedded.controllers.volumes.binding import set_volume_phase
from shoal.embedded.controllers.volumes.context import (
    BOUND_BY_CONTROLLER,
    PROVISIONED_BY,
    VolumeContext,
    annotations_of,
)


class VolumeReconciler:
    def __init__(self, context: VolumeContext) -> None:
        self._context = context

    async def reconcile(self, volume: Volume) -> None:
        obj, ref = self._context.volume_obj(volume), volume.spec.claim_ref
        if obj is None:
            return
        if ref is None or not ref.uid:
            # Available, or reserved for a claim that does not exist yet.
            await set_volume_phase(self._context, obj, "Available")
            return
        name = await self._volume_of_claim(ref.namespace, ref.name, ref.uid)
        if name is None:
            await self._released(volume, obj)
        elif name == volume.metadata.name:
            await set_volume_phase(self._context, obj, "Bound")
        elif name:
            await self._unbind(volume, obj)

    async def _volume_of_claim(self, namespace: str, name: str, uid: str) -> str | None:
        """The volume that the claim names; None if the claim no longer exists."""
        claim = self._context.claims.get((namespace, name))
        if claim is not None and claim.metadata.uid == uid:
            return claim.spec.volume_name
        # The cache may be late, and the next step cannot be undone.
        try:
            found = (await self._context.api.get(VOLUME_CLAIMS, namespace, name)).obj()
        except NotFoundError:
            return None
        if found["metadata"]["uid"] != uid:
            return None
        return str(found["spec"].get("volumeName", ""))

    async def _released(self, volume: Volume, obj: Obj) -> None:
        if volume.status.phase not in ("Released", "Failed"):
            await set_volume_phase(self._context, obj, "Released")
            return
        is_for_deletion = volume.spec.persistent_volume_reclaim_policy == "Delete"
        if is_for_deletion and PROVISIONED_BY not in volume.metadata.annotations and volume.status.phase == "Released":
            words = "error getting deleter volume plugin for volume: no deletable volume plugin matched"
            self._context.record_event(volume, "VolumeFailedDelete", words, "Warning")
            await set_volume_phase(self._context, obj, "Failed", words)

    async def _unbind(self, volume: Volume, obj: Obj) -> None:
        """Handles a volume whose claim was bound to another volume."""
        if PROVISIONED_BY in volume.metadata.annotations and volume.spec.persistent_volume_reclaim_policy == "Delete":
            await set_volume_phase(self._context, obj, "Released")
            return
        annotations = annotations_of(obj)
        if annotations.pop(BOUND_BY_CONTROLLER, None):
            del obj["spec"]["claimRef"]
        elif "uid" in obj["spec"]["claimRef"]:
            del obj["spec"]["claimRef"]["uid"]
        await self._context.api.update(VOLUMES, obj)
