"""The series of PersistentVolumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.api.meta import ObjectMeta
from shoal.api.wire import ApiStruct
from shoal.client.item import Item
from shoal.telemetry.kube_state.series import Family, add, amounts, exported

_PHASES = ("Pending", "Available", "Bound", "Released", "Failed")


class _VolumeDriver(ApiStruct, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class _FileServer(ApiStruct, frozen=True):
    server: str = ""
    path: str = ""


class _HostFolder(ApiStruct, frozen=True):
    path: str = ""
    fs_type: str = ""
    type: str = ""


class _VolumeClaim(ApiStruct, frozen=True):
    name: str = ""
    namespace: str = ""


class _ShownSpec(ApiStruct, frozen=True):
    capacity: Mapping[str, Any] = msgspec.field(default_factory=dict)
    storage_class_name: str = ""
    volume_mode: str = ""
    persistent_volume_reclaim_policy: str = ""
    claim_ref: _VolumeClaim | None = None
    csi: _VolumeDriver = _VolumeDriver()
    nfs: _FileServer = _FileServer()
    local: _HostFolder = _HostFolder()
    host_path: _HostFolder = _HostFolder()


class _ShownStatus(ApiStruct, frozen=True):
    phase: str = ""


class _ShownVolume(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: _ShownSpec = _ShownSpec()
    status: _ShownStatus = _ShownStatus()


def volume_series(item: Item) -> Family:
    """Raises msgspec.DecodeError for an object that is no PersistentVolume. The names of volumes of single clouds,
    which drivers of CSI have replaced, are not there."""
    volume = item.read(_ShownVolume)
    meta, spec = volume.metadata, volume.spec
    found: Family = {}
    own = (("persistentvolume", meta.name),)
    info = (
        ("storageclass", spec.storage_class_name),
        ("csi_driver", spec.csi.driver),
        ("csi_volume_handle", spec.csi.volume_handle),
        ("nfs_server", spec.nfs.server),
        ("nfs_path", spec.nfs.path),
        ("local_path", spec.local.path),
        ("local_fs", spec.local.fs_type),
        ("host_path", spec.host_path.path),
        ("host_path_type", spec.host_path.type),
        ("reclaim_policy", spec.persistent_volume_reclaim_policy),
    )
    add(found, "kube_persistentvolume_info", (*own, *info))
    add(found, "kube_persistentvolume_labels", (*own, *exported(meta.labels)))
    for name, moment in (("created", meta.creation_timestamp), ("deletion_timestamp", meta.deletion_timestamp)):
        if moment is not None:
            add(found, f"kube_persistentvolume_{name}", own, moment.timestamp())
    if volume.status.phase:
        for phase in _PHASES:
            add(found, "kube_persistentvolume_status_phase", (*own, ("phase", phase)), phase == volume.status.phase)
    if spec.claim_ref is not None:
        claim = (("name", spec.claim_ref.name), ("claim_namespace", spec.claim_ref.namespace))
        add(found, "kube_persistentvolume_claim_ref", (*own, *claim))
    if spec.volume_mode:
        add(found, "kube_persistentvolume_volume_mode", (*own, ("volumemode", spec.volume_mode)))
    for resource, _, value in amounts(spec.capacity):
        if resource == "storage":
            add(found, "kube_persistentvolume_capacity_bytes", own, value)
    return found
