"""Sets the defaults of pod volumes."""

from __future__ import annotations

from shoal.embedded.apiserver.kinds.complaints import Obj

_READABLE = 0o644
_FIXED: dict[str, dict[str, object]] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "secret": {"defaultMode": _READABLE},
    "configMap": {"defaultMode": _READABLE},
    "downwardAPI": {"defaultMode": _READABLE},
    "projected": {"defaultMode": _READABLE},
}


def default_volume(volume: Obj) -> None:
    sources = [key for key in volume if key != "name"]
    if not sources:
        volume["emptyDir"] = {}
        return
    for key in sources:
        source = volume[key]
        for field, value in _FIXED.get(key, {}).items():
            if field not in source or source[field] == "":
                source[field] = value
    if "downwardAPI" in volume:
        _default_items(volume["downwardAPI"])
    if "projected" in volume:
        for source in volume["projected"].get("sources") or ():
            if "downwardAPI" in source:
                _default_items(source["downwardAPI"])
            if "serviceAccountToken" in source:
                source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
    if "ephemeral" in volume and (template := volume["ephemeral"].get("volumeClaimTemplate")):
        template.setdefault("metadata", {})
        default_claim_spec(template.setdefault("spec", {}))
    if "image" in volume and not volume["image"].get("pullPolicy"):
        from shoal.embedded.apiserver.kinds.pods.images import pull_policy

        volume["image"]["pullPolicy"] = pull_policy(volume["image"].get("reference", ""))


def default_claim_spec(spec: Obj) -> None:
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("resources", {})


def default_field_reference(reference: Obj | None) -> None:
    if reference is not None and not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"


def _default_items(source: Obj) -> None:
    for item in source.get("items") or ():
        default_field_reference(item.get("fieldRef"))
        if "resourceFieldRef" in item:
            item["resourceFieldRef"].setdefault("divisor", "0")
