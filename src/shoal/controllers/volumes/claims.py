"""What becomes of a claim: it waits, gets a volume that is there, asks for one to be made, or has lost its own."""

from __future__ import annotations

from shoal.controllers.volumes.ground import OLD_PROVISIONER, PROVISIONER, SELECTED_NODE, Ground, annotations_of
from shoal.controllers.volumes.marriage import bind, set_claim_phase
from shoal.store.live.kind import VOLUME_CLAIMS
from shoal.store.volumes.matching import NO_PROVISIONER, best_volume, fault_of
from shoal.store.volumes.values import Claim, StorageClass

LOOK_AGAIN_S = 15.0
_NONE = "no persistent volumes available for this claim and no storage class is set"
_WAITS = "waiting for first consumer to be created before binding"


class ClaimWork:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def reconcile(self, claim: Claim) -> float | None:
        if claim.is_bound or (not claim.spec.volume_name and claim.status.phase in ("Bound", "Lost")):
            await self._check_bound(claim)
            return None
        if claim.spec.volume_name:
            return await self._named(claim)
        return await self._unnamed(claim)

    async def _unnamed(self, claim: Claim) -> float | None:
        ground = self._ground
        if claim.is_unclassed and await self._gets_default(claim):
            return None
        storage_class = ground.class_of(claim)
        waits = storage_class is not None and storage_class.waits
        # Where the scheduler chooses the node, it chooses the volume too, and keeps it for the claim.
        volume = best_volume(claim, [one for one in ground.volumes if not waits or one.is_for(claim)])
        if volume is not None:
            await bind(ground, claim, volume)
            return None
        if waits and SELECTED_NODE not in claim.metadata.annotations:
            ground.tell(claim, "WaitForFirstConsumer", _WAITS)
        elif claim.class_name:
            await self._ask_for_one(claim, storage_class)
        else:
            ground.tell(claim, "FailedBinding", _NONE)
        return LOOK_AGAIN_S

    async def _gets_default(self, claim: Claim) -> bool:
        """A claim of the time before there was a default class gets it now."""
        defaults = [one for one in self._ground.classes if one.is_default]
        obj = self._ground.claim_obj(claim)
        if not defaults or obj is None:
            return False
        newest = max(defaults, key=lambda one: (one.metadata.creation_timestamp, one.metadata.name))
        obj["spec"]["storageClassName"] = newest.metadata.name
        await self._ground.api.update(VOLUME_CLAIMS, obj)
        return True

    async def _ask_for_one(self, claim: Claim, storage_class: StorageClass | None) -> None:
        ground = self._ground
        if storage_class is None:
            words = f'storageclass.storage.k8s.io "{claim.class_name}" not found'
            ground.tell(claim, "ProvisioningFailed", words, "Warning")
            return
        name = storage_class.provisioner
        if name == NO_PROVISIONER:
            ground.tell(claim, "ProvisioningFailed", f"no volume plugin matched name: {name}", "Warning")
            return
        obj = ground.claim_obj(claim)
        if obj is None:
            return
        annotations = annotations_of(obj)
        if annotations.get(PROVISIONER) != name:
            annotations[PROVISIONER] = annotations[OLD_PROVISIONER] = name
            await ground.api.update(VOLUME_CLAIMS, obj)
        words = (
            "Waiting for a volume to be created either by the external provisioner "
            f"'{name}' or manually by the system administrator. If volume creation is delayed, please verify that "
            "the provisioner is running and correctly registered."
        )
        ground.tell(claim, "ExternalProvisioning", words)

    async def _named(self, claim: Claim) -> float | None:
        """It says which volume it wants."""
        ground, name = self._ground, claim.spec.volume_name
        volume = ground.volumes.get(("", name))
        if volume is None:
            return LOOK_AGAIN_S
        if volume.spec.claim_ref is None:
            fault = fault_of(claim, volume)
            if fault:
                words = f'Cannot bind to requested volume "{name}": {fault}'
                ground.tell(claim, "VolumeMismatch", words, "Warning")
                return LOOK_AGAIN_S
        elif not volume.is_for(claim):
            words = f'volume "{name}" already bound to a different claim.'
            ground.tell(claim, "FailedBinding", words, "Warning")
            return LOOK_AGAIN_S
        await bind(ground, claim, volume)
        return None

    async def _check_bound(self, claim: Claim) -> None:
        ground, name = self._ground, claim.spec.volume_name
        volume = ground.volumes.get(("", name)) if name else None
        if not name:
            reason, words = (
                "ClaimLost",
                "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
            )
        elif volume is None:
            reason, words = "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        elif volume.spec.claim_ref is None or volume.is_for(claim):
            await bind(ground, claim, volume)
            return
        else:
            reason = "ClaimMisbound"
            words = "Two claims are bound to the same volume, this one is bound incorrectly"
        if claim.status.phase != "Lost":
            ground.tell(claim, reason, words, "Warning")
            await set_claim_phase(ground, claim, "Lost")
