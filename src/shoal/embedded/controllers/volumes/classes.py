"""Defines the default StorageClass of a cluster without storage."""

from __future__ import annotations

from shoal.client.item import Obj

LOCAL_PROVISIONER = "shoal.dev/local"


def local_class() -> Obj:
    """A class whose volumes are only objects, on the node of their first consumer."""
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
