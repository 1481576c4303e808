"""A provisioner that makes volumes in name only: for classes of `shoal.dev/local`.

A volume's name is made of its claim's uid, so that whoever is killed on the way makes the same one again, not a second.
Where the class waits for the first consumer the volume belongs to the node that was chosen, as a local disk would. What
grows, grows at once: the volume first, then what the claim says of it.
"""

from __future__ import annotations

from shoal.controllers.volumes.classes import LOCAL_PROVISIONER
from shoal.controllers.volumes.ground import OLD_PROVISIONER, PROVISIONED_BY, PROVISIONER, SELECTED_NODE, Ground
from shoal.store.live.item import Obj
from shoal.store.live.kind import NODES, VOLUME_CLAIMS, VOLUMES
from shoal.store.live.port import Deletion
from shoal.store.live.refusals import AlreadyExistsError
from shoal.store.volumes.values import Claim, StorageClass, Volume

_HOST = "kubernetes.io/hostname"


class Provisioning:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._nodes = ground.context.informers.of(NODES)

    async def claim(self, claim: Claim) -> None:
        storage_class = self._ground.class_of(claim)
        if storage_class is None or claim.metadata.is_leaving:
            return
        if claim.is_bound:
            await self._grow(claim, storage_class)
            return
        told = claim.metadata.annotations
        name = told.get(PROVISIONER, told.get(OLD_PROVISIONER, ""))
        if claim.spec.volume_name or name != LOCAL_PROVISIONER:
            return
        if storage_class.waits and SELECTED_NODE not in told:
            return
        if storage_class.waits and self._nodes.get("", told[SELECTED_NODE]) is None:
            await self._choose_again(claim)
            return
        await self._make(claim, storage_class)

    async def _choose_again(self, claim: Claim) -> None:
        """The node is gone: the scheduler is to choose another."""
        obj = self._ground.claim_obj(claim)
        if obj is not None:
            del obj["metadata"]["annotations"][SELECTED_NODE]
            await self._ground.api.update(VOLUME_CLAIMS, obj)

    async def volume(self, volume: Volume) -> None:
        """Delete what its claim has left, if that is its policy."""
        is_ours = volume.metadata.annotations.get(PROVISIONED_BY) == LOCAL_PROVISIONER
        is_left = volume.status.phase == "Released" and not volume.metadata.is_leaving
        if is_ours and is_left and volume.spec.persistent_volume_reclaim_policy == "Delete":
            await self._ground.api.delete(VOLUMES, "", volume.metadata.name, Deletion(uid=volume.metadata.uid))

    async def _make(self, claim: Claim, storage_class: StorageClass) -> None:
        ground, meta = self._ground, claim.metadata
        name = f"pvc-{meta.uid}"
        if ground.volumes.get(("", name)) is not None:
            return
        words = f'External provisioner is provisioning volume for claim "{meta.namespace}/{meta.name}"'
        ground.tell(claim, "Provisioning", words)
        try:
            await ground.api.create(VOLUMES, self._volume(name, claim, storage_class))
        except AlreadyExistsError:
            return
        ground.tell(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    def _volume(self, name: str, claim: Claim, storage_class: StorageClass) -> Obj:
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

    async def _grow(self, claim: Claim, storage_class: StorageClass) -> None:
        ground = self._ground
        volume = ground.volumes.get(("", claim.spec.volume_name))
        has = claim.status.capacity.get("storage")
        if volume is None or has is None or has >= claim.asked or not storage_class.allow_volume_expansion:
            return
        if volume.metadata.annotations.get(PROVISIONED_BY) != LOCAL_PROVISIONER:
            return
        volume_obj, claim_obj = ground.volume_obj(volume), ground.claim_obj(claim)
        if volume_obj is None or claim_obj is None:
            return
        if volume.size < claim.asked:
            ground.tell(claim, "Resizing", f"External resizer is resizing volume {volume.metadata.name}")
            volume_obj["spec"]["capacity"]["storage"] = str(claim.asked)
            await ground.api.update(VOLUMES, volume_obj)
        claim_obj["status"]["capacity"]["storage"] = str(claim.asked)
        await ground.api.update(VOLUME_CLAIMS, claim_obj, "status")
        ground.tell(claim, "VolumeResizeSuccessful", "Resize volume succeeded")
