"""Volumes and claims do not go while in use, and claims grow only where their class lets them."""

from __future__ import annotations

from shoal.embedded.apiserver.admission.defaults import STORAGE_CLASS_ANNOTATION
from shoal.embedded.apiserver.admission.plugin import AdmissionPlugin, forbid
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.reading import Obj, Reader
from shoal.embedded.apiserver.resource import Resource
from shoal.units.quantity import ZERO, Quantity

_CLAIMS = ("", "persistentvolumeclaims")
_FINALIZERS = {
    _CLAIMS: "kubernetes.io/pvc-protection",
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}
_UNBOUND = "Only bound persistent volume claims can be expanded"
_FIXED = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


class StorageObjectInUseProtection(AdmissionPlugin):
    """A finalizer on every new object that pods or claims may be using."""

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return operation == "CREATE" and resource.home in _FINALIZERS and not subresource

    def mutate(self, admission: AdmissionAttributes) -> None:
        if admission.obj is None:
            return
        metadata = admission.obj["metadata"]
        finalizer = _FINALIZERS[admission.call.resource.home]
        present = metadata.get("finalizers") or []
        if finalizer not in present:
            metadata["finalizers"] = [*present, finalizer]


class PersistentVolumeClaimResize(AdmissionPlugin):
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return operation == "UPDATE" and resource.home == _CLAIMS and not subresource

    def validate(self, admission: AdmissionAttributes) -> None:
        new, old = admission.obj, admission.old
        if new is None or old is None or not _size(new) > _size(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise forbid(admission, _UNBOUND)
        name = storage_class(old)
        found = self._reader.get("storage.k8s.io", "storageclasses", "", name) if name else None
        if found is None or storage_class(new) != name or not found.get("allowVolumeExpansion"):
            raise forbid(admission, _FIXED)


def storage_class(claim: Obj) -> str:
    """The old annotation wins over the field, as it does for the volume controllers."""
    annotations = claim["metadata"].get("annotations") or {}
    if STORAGE_CLASS_ANNOTATION in annotations:
        return str(annotations[STORAGE_CLASS_ANNOTATION])
    return str((claim.get("spec") or {}).get("storageClassName") or "")


def _size(claim: Obj) -> Quantity:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return Quantity.parse(requests["storage"]) if "storage" in requests else ZERO
