"""The checks of the level `restricted`: what a hardened pod must say of itself."""

from __future__ import annotations

from shoal.embedded.apiserver.admission.pod_security.baseline import forbidden_capabilities
from shoal.embedded.apiserver.admission.pod_security.pod import (
    Check,
    SecuredPod,
    Violation,
    containers,
    plural,
    quoted,
    setters,
)
from shoal.embedded.apiserver.reading import Obj

_ALLOWED_VOLUMES = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
_NAMED_VOLUMES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def not_on_windows(check: Check) -> Check:
    """Windows has no such thing, and validation refuses the field there."""
    return lambda pod: None if pod.is_windows else check(pod)


def not_with_own_users(check: Check) -> Check:
    return lambda pod: None if pod.has_own_users else check(pod)


def privilege_escalation(pod: SecuredPod) -> Violation | None:
    names = [name for name, _, security in pod.containers if security.get("allowPrivilegeEscalation") is not False]
    if not names:
        return None
    reason = "allowPrivilegeEscalation != false"
    return Violation(reason, f"{containers(names)} must set securityContext.allowPrivilegeEscalation=false")


def capabilities(pod: SecuredPod) -> Violation | None:
    keeping: list[str] = []
    adding: list[str] = []
    added: set[str] = set()
    for name, _, security in pod.containers:
        wanted = security.get("capabilities") or {}
        if "ALL" not in (wanted.get("drop") or ()):
            keeping.append(name)
        extra = set(wanted.get("add") or ()) - {"NET_BIND_SERVICE"}
        if extra:
            adding.append(name)
            added |= extra
    reported = [f'{containers(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    if adding:
        reported.append(forbidden_capabilities(adding, added))
    return Violation("unrestricted capabilities", "; ".join(reported)) if reported else None


def volumes(pod: SecuredPod) -> Violation | None:
    wrong = [
        one for one in pod.spec.get("volumes") or () if not any(one.get(kind) is not None for kind in _ALLOWED_VOLUMES)
    ]
    if not wrong:
        return None
    kinds = sorted({_kind_of(one) for one in wrong})
    who = f"{plural(len(wrong), 'volume', 'volumes')} {quoted(str(one['name']) for one in wrong)}"
    what = plural(len(kinds), "restricted volume type", "restricted volume types")
    detail = f"{who} {plural(len(wrong), 'uses', 'use')} {what} {quoted(kinds)}"
    return Violation("restricted volume types", detail)


def _kind_of(volume: Obj) -> str:
    return next((kind for kind in _NAMED_VOLUMES if volume.get(kind) is not None), "unknown")


def non_root(pod: SecuredPod) -> Violation | None:
    own = pod.security.get("runAsNonRoot")
    explicit = [name for name, _, security in pod.containers if security.get("runAsNonRoot") is False]
    who = setters(own is False, explicit)
    reason = "runAsNonRoot != true"
    if who:
        return Violation(reason, f"{who} must not set securityContext.runAsNonRoot=false")
    silent = [name for name, _, security in pod.containers if security.get("runAsNonRoot") is None]
    if own or not silent:
        return None
    return Violation(reason, f"pod or {containers(silent)} must set securityContext.runAsNonRoot=true")


def user(pod: SecuredPod) -> Violation | None:
    names = [name for name, _, security in pod.containers if security.get("runAsUser") == 0]
    who = setters(pod.security.get("runAsUser") == 0, names)
    return Violation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None
