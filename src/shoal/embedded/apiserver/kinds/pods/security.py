"""Checks of security contexts of pods and containers: ids, profiles, privileges."""

from __future__ import annotations

import re

from shoal.embedded.apiserver.field_errors import bad_value, duplicate, not_allowed, required
from shoal.embedded.apiserver.kinds.complaints import MAX_INT32, Errors, Obj, add_out_of_range, add_unsupported

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_IDS = ("runAsUser", "runAsGroup")
_SYSCTL_WORDS = (
    "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*"
    "[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")


def check_pod_security(spec: Obj, path: str, errors: Errors) -> None:
    context = spec.get("securityContext")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        words = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(bad_value(f"{path}.shareProcessNamespace", True, words))
    if not context:
        return
    path = f"{path}.securityContext"
    for key in ("fsGroup", *_IDS):
        if (value := context.get(key)) is not None:
            add_out_of_range(errors, f"{path}.{key}", value, 0, MAX_INT32)
    for place, group in enumerate(context.get("supplementalGroups") or ()):
        add_out_of_range(errors, f"{path}.supplementalGroups[{place}]", group, 0, MAX_INT32)
    _check_sysctls(context.get("sysctls") or (), f"{path}.sysctls", errors)
    if (change := context.get("fsGroupChangePolicy")) is not None:
        add_unsupported(errors, f"{path}.fsGroupChangePolicy", change, ("Always", "OnRootMismatch"))
    if (merge := context.get("supplementalGroupsPolicy")) is not None:
        add_unsupported(errors, f"{path}.supplementalGroupsPolicy", merge, ("Merge", "Strict"))
    _check_profiles(context, path, errors)


def check_container_security(context: Obj, path: str, errors: Errors) -> None:
    for key in _IDS:
        if (value := context.get(key)) is not None:
            add_out_of_range(errors, f"{path}.{key}", value, 0, MAX_INT32)
    if (mount := context.get("procMount")) is not None:
        add_unsupported(errors, f"{path}.procMount", mount, ("Default", "Unmasked"))
    _check_profiles(context, path, errors)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            words = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(bad_value(path, context, words))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            words = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(bad_value(path, context, words))


def _check_profiles(context: Obj, path: str, errors: Errors) -> None:
    for key in ("seccompProfile", "appArmorProfile"):
        profile = context.get(key)
        if profile is None:
            continue
        here, kind, place = f"{path}.{key}", profile.get("type", ""), profile.get("localhostProfile")
        named = "seccomp" if key == "seccompProfile" else "AppArmor"
        if kind == "Localhost":
            if not place:
                errors.append(required(f"{here}.localhostProfile", f"must be set when {named} type is Localhost"))
        elif place is not None:
            words = f"can only be set when {named} type is Localhost"
            errors.append(bad_value(f"{here}.localhostProfile", place, words))
        if not kind:
            errors.append(required(f"{here}.type", f"type is required when {key} is set"))
        elif kind not in _PROFILES:
            add_unsupported(errors, f"{here}.type", kind, _PROFILES)


def _check_sysctls(sysctls: list[Obj] | tuple[()], path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for place, one in enumerate(sysctls):
        name = one.get("name", "")
        here = f"{path}[{place}].name"
        if not name:
            errors.append(required(here))
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            errors.append(bad_value(here, name, _SYSCTL_WORDS))
        elif name in seen:
            errors.append(duplicate(here, name))
        seen.add(name)


def check_host_namespaces(spec: Obj, path: str, errors: Errors) -> None:
    if spec.get("hostUsers") is False:
        for key, named in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(key):
                errors.append(not_allowed(f"{path}.{named}", "when `pod.Spec.HostUsers` is false"))
