"""Checks of a pod's volumes and of where its containers mount them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.embedded.apiserver.field_errors import (
    bad_value,
    duplicate,
    missing_reference,
    not_allowed,
    not_supported,
    required,
)
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.core.volume_claims import check_claim_spec
from shoal.embedded.apiserver.kinds.pods.environment import check_field_reference, check_resource_reference
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults, subdomain_faults
from shoal.units.quantity import Quantity

_SOURCES = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "configMap", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc", "flexVolume",
    "azureFile", "vsphereVolume", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO", "csi",
    "ephemeral", "image",
)  # fmt: skip
_HOST_PATHS = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_DOWNWARD_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_MODE_WORDS = "must be a number between 0 and 0777 (octal), both inclusive"
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")


def check_volumes(volumes: list[Obj], path: str, errors: Errors) -> frozenset[str]:
    """The names that containers may mount."""
    names: set[str] = set()
    for place, volume in enumerate(volumes):
        here, before = f"{path}[{place}]", len(errors)
        _check_source(volume, here, errors)
        name = volume.get("name", "")
        if not name:
            errors.append(required(f"{here}.name"))
        elif faults := dns_label_faults(name):
            add_faults(errors, f"{here}.name", name, faults)
        if name in names:
            errors.append(duplicate(f"{here}.name", name))
        if len(errors) == before:
            # A volume with a fault is none: nothing mounts it, and another may have its name.
            names.add(name)
    return frozenset(names)


def _check_source(volume: Obj, path: str, errors: Errors) -> None:
    sources = [key for key in volume if key != "name" and volume[key] is not None]
    if len(sources) > 1:
        # The first in the order of Kubernetes is the source, whatever the order in which they were sent.
        sources.sort(key=lambda key: _SOURCES.index(key) if key in _SOURCES else len(_SOURCES))
    if not sources:
        errors.append(required(path, "must specify a volume type"))
        return
    for key in sources[1:]:
        errors.append(not_allowed(f"{path}.{key}", "may not specify more than 1 volume type"))
    if check := _CHECKS.get(sources[0]):
        check(volume[sources[0]], f"{path}.{sources[0]}", errors)


def _check_empty_dir(source: Obj, path: str, errors: Errors) -> None:
    if (limit := source.get("sizeLimit")) and Quantity.parse(limit).nano < 0:
        errors.append(not_allowed(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity"))


def _check_host_path(source: Obj, path: str, errors: Errors) -> None:
    if not (where := source.get("path", "")):
        errors.append(required(f"{path}.path"))
        return
    if ".." in where.split("/"):
        errors.append(bad_value(f"{path}.path", where, "must not contain '..'"))
    if (kind := source.get("type", "")) not in _HOST_PATHS:
        errors.append(not_supported(f"{path}.type", kind, _HOST_PATHS))


def _check_mode(source: Obj, key: str, path: str, errors: Errors) -> None:
    mode = source.get(key)
    if mode is not None and not 0 <= mode <= 0o777:
        errors.append(bad_value(f"{path}.{key}", mode, _MODE_WORDS))


def _check_secret(source: Obj, path: str, errors: Errors) -> None:
    if not source.get("secretName"):
        errors.append(required(f"{path}.secretName"))
    _check_mode(source, "defaultMode", path, errors)
    _check_items(source, path, errors)


def _check_config_map(source: Obj, path: str, errors: Errors) -> None:
    if not source.get("name"):
        errors.append(required(f"{path}.name"))
    _check_mode(source, "defaultMode", path, errors)
    _check_items(source, path, errors)


def _check_items(source: Obj, path: str, errors: Errors) -> None:
    for place, item in enumerate(source.get("items") or ()):
        here = f"{path}.items[{place}]"
        if not item.get("key"):
            errors.append(required(f"{here}.key"))
        if not (where := item.get("path", "")):
            errors.append(required(f"{here}.path"))
        else:
            _check_inside(where, f"{here}.path", errors, dotted=True)
        _check_mode(item, "mode", here, errors)


def _check_inside(where: str, path: str, errors: Errors, *, dotted: bool = False) -> None:
    """A relative path that does not leave its folder."""
    if where.startswith("/"):
        errors.append(bad_value(path, where, "must be a relative path"))
    if ".." in where.split("/"):
        errors.append(bad_value(path, where, "must not contain '..'"))
    elif dotted and where.startswith(".."):
        errors.append(bad_value(path, where, "must not start with '..'"))


def _check_downward(source: Obj, path: str, errors: Errors) -> None:
    _check_mode(source, "defaultMode", path, errors)
    for item in source.get("items") or ():
        if not (where := item.get("path", "")):
            errors.append(required(f"{path}.path"))
        else:
            _check_inside(where, f"{path}.path", errors, dotted=True)
        if (reference := item.get("fieldRef")) is not None:
            check_field_reference(reference, f"{path}.fieldRef", _DOWNWARD_FIELDS, errors)
            if item.get("resourceFieldRef") is not None:
                words = "fieldRef and resourceFieldRef can not be specified simultaneously"
                errors.append(bad_value(path, "resource", words))
        elif (reference := item.get("resourceFieldRef")) is not None:
            check_resource_reference(reference, f"{path}.resourceFieldRef", errors, needs_container=True)
        else:
            errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
        _check_mode(item, "mode", path, errors)


def _check_projected(source: Obj, path: str, errors: Errors) -> None:
    _check_mode(source, "defaultMode", path, errors)
    for place, one in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{place}]"
        if "secret" in one or "configMap" in one:
            key = "secret" if "secret" in one else "configMap"
            if not one[key].get("name"):
                errors.append(required(f"{here}.{key}.name"))
            _check_items(one[key], f"{here}.{key}", errors)
        elif "downwardAPI" in one:
            _check_downward(one["downwardAPI"], f"{here}.downwardAPI", errors)
        elif "serviceAccountToken" in one:
            _check_token(one["serviceAccountToken"], f"{here}.serviceAccountToken", errors)


def _check_token(source: Obj, path: str, errors: Errors) -> None:
    seconds = source.get("expirationSeconds", 3600)
    if seconds < 600:
        words = "may not specify a duration less than 10 minutes"
        errors.append(bad_value(f"{path}.expirationSeconds", seconds, words))
    elif seconds > 2**32:
        words = "may not specify a duration larger than 2^32 seconds"
        errors.append(bad_value(f"{path}.expirationSeconds", seconds, words))
    if not source.get("path"):
        errors.append(required(f"{path}.path"))


def _check_claim(source: Obj, path: str, errors: Errors) -> None:
    if not source.get("claimName"):
        errors.append(required(f"{path}.claimName"))


def _check_nfs(source: Obj, path: str, errors: Errors) -> None:
    for key in ("server", "path"):
        if not source.get(key):
            errors.append(required(f"{path}.{key}"))
    if not source.get("path", "").startswith("/"):
        errors.append(bad_value(f"{path}.path", source.get("path", ""), "must be an absolute path"))


def _check_csi(source: Obj, path: str, errors: Errors) -> None:
    driver = source.get("driver", "")
    if not driver:
        errors.append(required(f"{path}.driver"))
    else:
        add_faults(errors, f"{path}.driver", driver, subdomain_faults(driver.lower()))


def _check_ephemeral(source: Obj, path: str, errors: Errors) -> None:
    if source.get("volumeClaimTemplate") is None:
        errors.append(required(f"{path}.volumeClaimTemplate"))
        return
    check_claim_spec(source["volumeClaimTemplate"].get("spec") or {}, f"{path}.volumeClaimTemplate.spec", errors)


_CHECKS: Mapping[str, Callable[[Obj, str, Errors], None]] = {
    "emptyDir": _check_empty_dir,
    "hostPath": _check_host_path,
    "secret": _check_secret,
    "configMap": _check_config_map,
    "downwardAPI": _check_downward,
    "projected": _check_projected,
    "persistentVolumeClaim": _check_claim,
    "nfs": _check_nfs,
    "csi": _check_csi,
    "ephemeral": _check_ephemeral,
}


def check_devices(container: Obj, known: frozenset[str] | None, path: str, errors: Errors) -> None:
    """Volumes that a container sees as block devices."""
    mounts = {mount.get("name"): mount.get("mountPath") for mount in container.get("volumeMounts") or ()}
    names: set[str] = set()
    places: set[str] = set()
    for place, device in enumerate(container.get("volumeDevices") or ()):
        here, name, where = f"{path}.volumeDevices[{place}]", device.get("name", ""), device.get("devicePath", "")
        if not name:
            errors.append(required(f"{here}.name"))
        if name in names:
            errors.append(bad_value(f"{here}.name", name, "must be unique"))
        if known is not None and name not in known:
            errors.append(missing_reference(f"{here}.name", name))
        if not where:
            errors.append(required(f"{here}.devicePath"))
        if where in places:
            errors.append(bad_value(f"{here}.devicePath", where, "must be unique"))
        if ".." in where.split("/"):
            errors.append(bad_value(f"{here}.devicePath", where, "can not contain backsteps ('..')"))
        if name in mounts:
            errors.append(bad_value(f"{here}.name", name, "must not already exist in volumeMounts"))
        if where in mounts.values():
            errors.append(bad_value(f"{here}.devicePath", where, "must not already exist as a path in volumeMounts"))
        names |= {name} - {""}
        places |= {where} - {""}


def check_mounts(container: Obj, known: frozenset[str] | None, path: str, errors: Errors) -> None:
    """`known` is None where a template's volumes are completed later (claims of a stateful set)."""
    places: set[str] = set()
    devices = {device.get("name"): device.get("devicePath") for device in container.get("volumeDevices") or ()}
    for place, mount in enumerate(container.get("volumeMounts") or ()):
        here = f"{path}.volumeMounts[{place}]"
        if not (name := mount.get("name", "")):
            errors.append(required(f"{here}.name"))
        if known is not None and name not in known:
            errors.append(missing_reference(f"{here}.name", name))
        if not (where := mount.get("mountPath", "")):
            errors.append(required(f"{here}.mountPath"))
        if where in places:
            errors.append(bad_value(f"{here}.mountPath", where, "must be unique"))
        places.add(where)
        if name in devices:
            errors.append(bad_value(f"{here}.name", name, "must not already exist in volumeDevices"))
        if where in devices.values():
            errors.append(bad_value(f"{here}.mountPath", where, "must not already exist as a path in volumeDevices"))
        _check_sub_path(mount, here, errors)
        if (propagation := mount.get("mountPropagation")) and propagation not in _PROPAGATIONS:
            errors.append(not_supported(f"{here}.mountPropagation", propagation, _PROPAGATIONS))


def _check_sub_path(mount: Obj, path: str, errors: Errors) -> None:
    sub, expression = mount.get("subPath"), mount.get("subPathExpr")
    if sub:
        _check_inside(sub, f"{path}.subPath", errors)
    if expression:
        if sub:
            words = "subPathExpr and subPath are mutually exclusive"
            errors.append(bad_value(f"{path}.subPathExpr", expression, words))
        _check_inside(expression, f"{path}.subPathExpr", errors)
