"""What becomes of a volume: free, bound, left behind by its claim, and then kept or deleted as its policy says."""

from __future__ import annotations

from shoal.controllers.volumes.ground import BOUND_BY_CONTROLLER, PROVISIONED_BY, Ground, annotations_of
from shoal.controllers.volumes.marriage import set_volume_phase
from shoal.store.live.item import Obj
from shoal.store.live.kind import VOLUME_CLAIMS, VOLUMES
from shoal.store.live.refusals import NotFoundError
from shoal.store.volumes.values import Volume


class VolumeWork:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def reconcile(self, volume: Volume) -> None:
        obj, ref = self._ground.volume_obj(volume), volume.spec.claim_ref
        if obj is None:
            return
        if ref is None or not ref.uid:
            # Free, or kept for a claim that is not there yet.
            await set_volume_phase(self._ground, obj, "Available")
            return
        name = await self._named_by_claim(ref.namespace, ref.name, ref.uid)
        if name is None:
            await self._left(volume, obj)
        elif name == volume.metadata.name:
            await set_volume_phase(self._ground, obj, "Bound")
        elif name:
            await self._unwanted(volume, obj)

    async def _named_by_claim(self, namespace: str, name: str, uid: str) -> str | None:
        """Which volume the claim says it has; None when there is no such claim any more."""
        claim = self._ground.claims.get((namespace, name))
        if claim is not None and claim.metadata.uid == uid:
            return claim.spec.volume_name
        # The cache may be behind, and what follows cannot be undone.
        try:
            found = (await self._ground.api.get(VOLUME_CLAIMS, namespace, name)).obj()
        except NotFoundError:
            return None
        if found["metadata"]["uid"] != uid:
            return None
        return str(found["spec"].get("volumeName", ""))

    async def _left(self, volume: Volume, obj: Obj) -> None:
        if volume.status.phase not in ("Released", "Failed"):
            await set_volume_phase(self._ground, obj, "Released")
            return
        is_for_deletion = volume.spec.persistent_volume_reclaim_policy == "Delete"
        if is_for_deletion and PROVISIONED_BY not in volume.metadata.annotations and volume.status.phase == "Released":
            words = "error getting deleter volume plugin for volume: no deletable volume plugin matched"
            self._ground.tell(volume, "VolumeFailedDelete", words, "Warning")
            await set_volume_phase(self._ground, obj, "Failed", words)

    async def _unwanted(self, volume: Volume, obj: Obj) -> None:
        """Its claim was bound to another volume meanwhile."""
        if PROVISIONED_BY in volume.metadata.annotations and volume.spec.persistent_volume_reclaim_policy == "Delete":
            await set_volume_phase(self._ground, obj, "Released")
            return
        annotations = annotations_of(obj)
        if annotations.pop(BOUND_BY_CONTROLLER, None):
            del obj["spec"]["claimRef"]
        elif "uid" in obj["spec"]["claimRef"]:
            del obj["spec"]["claimRef"]["uid"]
        await self._ground.api.update(VOLUMES, obj)
