"""The storage class that a cluster without storage has by default."""

from __future__ import annotations

from shoal.store.live.item import Obj

LOCAL_PROVISIONER = "shoal.dev/local"


def local_class() -> Obj:
    """Volumes that are made, in name, on the node of their first consumer."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "shoal-local",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": LOCAL_PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }
