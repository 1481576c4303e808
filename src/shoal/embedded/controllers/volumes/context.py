"""Provides what the volume controllers share: the decoded objects, and Events about them."""

from __future__ import annotations

from typing import Literal

from shoal.client.context import Context
from shoal.client.item import Item, Obj
from shoal.client.kind import STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from shoal.client.volumes.values import Known, StorageClass, Volume, VolumeClaim

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"


class VolumeContext:
    def __init__(self, context: Context) -> None:
        of = context.informers.of
        self.runtime = context
        self.api = context.api
        self.claim_items, self.volume_items = of(VOLUME_CLAIMS), of(VOLUMES)
        self.claims = Known(self.claim_items, VolumeClaim)
        self.volumes = Known(self.volume_items, Volume)
        self.classes = Known(of(STORAGE_CLASSES), StorageClass)

    def class_of(self, claim: VolumeClaim) -> StorageClass | None:
        return self.classes.get(("", claim.class_name))

    def claim_obj(self, claim: VolumeClaim) -> Obj | None:
        return _obj(self.claim_items.get(*claim.key))

    def volume_obj(self, volume: Volume) -> Obj | None:
        return _obj(self.volume_items.get(*volume.key))

    def record_event(
        self, what: VolumeClaim | Volume, reason: str, message: str, type_: Literal["Normal", "Warning"] = "Normal"
    ) -> None:
        """Records an Event about a claim or a volume."""
        meta = what.metadata
        kind = "PersistentVolumeClaim" if isinstance(what, VolumeClaim) else "PersistentVolume"
        about = {
            "kind": kind,
            "apiVersion": "v1",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        }
        self.runtime.events.record(about, reason, message, type_=type_)


def _obj(item: Item | None) -> Obj | None:
    return item.obj() if item is not None else None


def annotations_of(obj: Obj) -> dict[str, str]:
    """The annotations of an object, as a mutable map in it."""
    found: dict[str, str] = obj["metadata"].setdefault("annotations", {})
    return found
