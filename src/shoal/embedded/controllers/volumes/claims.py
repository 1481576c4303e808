"""Reconciles PersistentVolumeClaims: pending, bound to an existing volume, provisioned, or lost."""

from __future__ import annotations

from shoal.client.kind import VOLUME_CLAIMS
from shoal.client.volumes.matching import NO_PROVISIONER, best_volume, fault_of
from shoal.client.volumes.values import StorageClass, VolumeClaim
from shoal.embedded.controllers.volumes.binding import bind, set_claim_phase
from shoal.embedded.controllers.volumes.context import (
    BETA_PROVISIONER,
    PROVISIONER,
    SELECTED_NODE,
    VolumeContext,
    annotations_of,
)

RESYNC_S = 15.0
_NO_VOLUMES = "no persistent volumes available for this claim and no storage class is set"
_WAIT_FOR_CONSUMER = "waiting for first consumer to be created before binding"


class ClaimReconciler:
    def __init__(self, context: VolumeContext) -> None:
        self._context = context

    async def reconcile(self, claim: VolumeClaim) -> float | None:
        if claim.is_bound or (not claim.spec.volume_name and claim.status.phase in ("Bound", "Lost")):
            await self._check_bound(claim)
            return None
        if claim.spec.volume_name:
            return await self._sync_named(claim)
        return await self._sync_unbound(claim)

    async def _sync_unbound(self, claim: VolumeClaim) -> float | None:
        context = self._context
        if claim.is_unclassed and await self._set_default_class(claim):
            return None
        storage_class = context.class_of(claim)
        waits = storage_class is not None and storage_class.waits
        # With WaitForFirstConsumer the scheduler chooses the volume, and reserves it for the claim.
        volume = best_volume(claim, [one for one in context.volumes if not waits or one.is_for(claim)])
        if volume is not None:
            await bind(context, claim, volume)
            return None
        if waits and SELECTED_NODE not in claim.metadata.annotations:
            context.record_event(claim, "WaitForFirstConsumer", _WAIT_FOR_CONSUMER)
        elif claim.class_name:
            await self._request_volume(claim, storage_class)
        else:
            context.record_event(claim, "FailedBinding", _NO_VOLUMES)
        return RESYNC_S

    async def _set_default_class(self, claim: VolumeClaim) -> bool:
        """Sets the default class on a claim that was created before there was one."""
        defaults = [one for one in self._context.classes if one.is_default]
        obj = self._context.claim_obj(claim)
        if not defaults or obj is None:
            return False
        newest = max(defaults, key=lambda one: (one.metadata.creation_timestamp, one.metadata.name))
        obj["spec"]["storageClassName"] = newest.metadata.name
        await self._context.api.update(VOLUME_CLAIMS, obj)
        return True

    async def _request_volume(self, claim: VolumeClaim, storage_class: StorageClass | None) -> None:
        context = self._context
        if storage_class is None:
            words = f'storageclass.storage.k8s.io "{claim.class_name}" not found'
            context.record_event(claim, "ProvisioningFailed", words, "Warning")
            return
        name = storage_class.provisioner
        if name == NO_PROVISIONER:
            context.record_event(claim, "ProvisioningFailed", f"no volume plugin matched name: {name}", "Warning")
            return
        obj = context.claim_obj(claim)
        if obj is None:
            return
        annotations = annotations_of(obj)
        if annotations.get(PROVISIONER) != name:
            annotations[PROVISIONER] = annotations[BETA_PROVISIONER] = name
            await context.api.update(VOLUME_CLAIMS, obj)
        words = (
            "Waiting for a volume to be created either by the external provisioner "
            f"'{name}' or manually by the system administrator. If volume creation is delayed, please verify that "
            "the provisioner is running and correctly registered."
        )
        context.record_event(claim, "ExternalProvisioning", words)

    async def _sync_named(self, claim: VolumeClaim) -> float | None:
        """Handles a claim that names its volume."""
        context, name = self._context, claim.spec.volume_name
        volume = context.volumes.get(("", name))
        if volume is None:
            return RESYNC_S
        if volume.spec.claim_ref is None:
            fault = fault_of(claim, volume)
            if fault:
                words = f'Cannot bind to requested volume "{name}": {fault}'
                context.record_event(claim, "VolumeMismatch", words, "Warning")
                return RESYNC_S
        elif not volume.is_for(claim):
            words = f'volume "{name}" already bound to a different claim.'
            context.record_event(claim, "FailedBinding", words, "Warning")
            return RESYNC_S
        await bind(context, claim, volume)
        return None

    async def _check_bound(self, claim: VolumeClaim) -> None:
        context, name = self._context, claim.spec.volume_name
        volume = context.volumes.get(("", name)) if name else None
        if not name:
            reason, words = (
                "ClaimLost",
                "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
            )
        elif volume is None:
            reason, words = "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        elif volume.spec.claim_ref is None or volume.is_for(claim):
            await bind(context, claim, volume)
            return
        else:
            reason = "ClaimMisbound"
            words = "Two claims are bound to the same volume, this one is bound incorrectly"
        if claim.status.phase != "Lost":
            context.record_event(claim, reason, words, "Warning")
            await set_claim_phase(context, claim, "Lost")
