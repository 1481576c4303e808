"""Provisions volumes that are only objects, for classes with the provisioner `shoal.dev/local`.

The name of a volume contains the uid of its claim, so that a new process after a crash creates the same volume again
and not a second one. If the class waits for the first consumer, the volume belongs to the chosen node, like a local
disk. Resizing happens at once: first the volume, then the status of the claim.
"""

from __future__ import annotations

from shoal.client.item import Obj
from shoal.client.kind import NODES, VOLUME_CLAIMS, VOLUMES
from shoal.client.port import Deletion
from shoal.client.refusals import AlreadyExistsError
from shoal.client.volumes.values import StorageClass, Volume, VolumeClaim
from shoal.embedded.controllers.volumes.classes import LOCAL_PROVISIONER
from shoal.embedded.controllers.volumes.context import (
    BETA_PROVISIONER,
    PROVISIONED_BY,
    PROVISIONER,
    SELECTED_NODE,
    VolumeContext,
)

_HOST = "kubernetes.io/hostname"


class Provisioner:
    def __init__(self, context: VolumeContext) -> None:
        self._context = context
        self._nodes = context.runtime.informers.of(NODES)

    async def claim(self, claim: VolumeClaim) -> None:
        storage_class = self._context.class_of(claim)
        if storage_class is None or claim.metadata.is_terminating:
            return
        if claim.is_bound:
            await self._resize(claim, storage_class)
            return
        annotations = claim.metadata.annotations
        name = annotations.get(PROVISIONER, annotations.get(BETA_PROVISIONER, ""))
        if claim.spec.volume_name or name != LOCAL_PROVISIONER:
            return
        if storage_class.waits and SELECTED_NODE not in annotations:
            return
        if storage_class.waits and self._nodes.get("", annotations[SELECTED_NODE]) is None:
            await self._reschedule(claim)
            return
        await self._provision(claim, storage_class)

    async def _reschedule(self, claim: VolumeClaim) -> None:
        """Removes the selected node if it no longer exists, so that the scheduler chooses another."""
        obj = self._context.claim_obj(claim)
        if obj is not None:
            del obj["metadata"]["annotations"][SELECTED_NODE]
            await self._context.api.update(VOLUME_CLAIMS, obj)

    async def volume(self, volume: Volume) -> None:
        """Deletes a released volume if its reclaim policy is Delete."""
        is_ours = volume.metadata.annotations.get(PROVISIONED_BY) == LOCAL_PROVISIONER
        is_left = volume.status.phase == "Released" and not volume.metadata.is_terminating
        if is_ours and is_left and volume.spec.persistent_volume_reclaim_policy == "Delete":
            await self._context.api.delete(VOLUMES, "", volume.metadata.name, Deletion(uid=volume.metadata.uid))

    async def _provision(self, claim: VolumeClaim, storage_class: StorageClass) -> None:
        context, meta = self._context, claim.metadata
        name = f"pvc-{meta.uid}"
        if context.volumes.get(("", name)) is not None:
            return
        words = f'External provisioner is provisioning volume for claim "{meta.namespace}/{meta.name}"'
        context.record_event(claim, "Provisioning", words)
        try:
            await context.api.create(VOLUMES, self._volume(name, claim, storage_class))
        except AlreadyExistsError:
            return
        context.record_event(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    def _volume(self, name: str, claim: VolumeClaim, storage_class: StorageClass) -> Obj:
        meta = claim.metadata
        spec: Obj = {
            "accessModes": list(claim.spec.access_modes),
            "capacity": {"storage": str(claim.asked)},
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": meta.namespace,
                "name": meta.name,
                "uid": meta.uid,
            },
            "hostPath": {"path": f"/var/lib/shoal/volumes/{name}", "type": "DirectoryOrCreate"},
            "persistentVolumeReclaimPolicy": storage_class.reclaim_policy,
            "storageClassName": storage_class.metadata.name,
            "volumeMode": claim.spec.volume_mode,
        }
        if storage_class.mount_options:
            spec["mountOptions"] = list(storage_class.mount_options)
        if claim.spec.volume_attributes_class_name:
            spec["volumeAttributesClassName"] = claim.spec.volume_attributes_class_name
        if storage_class.waits:
            host = self._host(meta.annotations[SELECTED_NODE])
            term = {"matchExpressions": [{"key": _HOST, "operator": "In", "values": [host]}]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
        return {"metadata": {"name": name, "annotations": {PROVISIONED_BY: storage_class.provisioner}}, "spec": spec}

    def _host(self, node: str) -> str:
        item = self._nodes.get("", node)
        labels = item.obj()["metadata"].get("labels", {}) if item is not None else {}
        return str(labels.get(_HOST, node))

    async def _resize(self, claim: VolumeClaim, storage_class: StorageClass) -> None:
        context = self._context
        volume = context.volumes.get(("", claim.spec.volume_name))
        has = claim.status.capacity.get("storage")
        if volume is None or has is None or has >= claim.asked or not storage_class.allow_volume_expansion:
            return
        if volume.metadata.annotations.get(PROVISIONED_BY) != LOCAL_PROVISIONER:
            return
        volume_obj, claim_obj = context.volume_obj(volume), context.claim_obj(claim)
        if volume_obj is None or claim_obj is None:
            return
        if volume.size < claim.asked:
            context.record_event(claim, "Resizing", f"External resizer is resizing volume {volume.metadata.name}")
            volume_obj["spec"]["capacity"]["storage"] = str(claim.asked)
            await context.api.update(VOLUMES, volume_obj)
        claim_obj["status"]["capacity"]["storage"] = str(claim.asked)
        await context.api.update(VOLUME_CLAIMS, claim_obj, "status")
        context.record_event(claim, "VolumeResizeSuccessful", "Resize volume succeeded")
