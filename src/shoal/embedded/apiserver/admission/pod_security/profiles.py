"""Checks the profiles and options that both the pod and its containers may set, for both Pod Security levels.

AppArmor, SELinux, seccomp, sysctls and Windows host processes: the pod's securityContext and each container's are
looked at alike, and the answer names each that violates the level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shoal.embedded.apiserver.admission.pod_security.pod import (
    Check,
    SecuredPod,
    Violation,
    containers,
    plural,
    quoted,
    setters,
)
from shoal.embedded.apiserver.field_errors import shown
from shoal.embedded.apiserver.reading import Obj

_PROFILES = ("RuntimeDefault", "Localhost")
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"


def _setting(pod: SecuredPod, read: Callable[[Obj], str | None]) -> tuple[bool, list[str], set[str]]:
    """Whether the pod set something wrong, which containers did, and what; `read` gives what is wrong."""
    found: set[str] = set()
    own = read(pod.security)
    if own is not None:
        found.add(own)
    names = []
    for name, _, security in pod.containers:
        wrong = read(security)
        if wrong is not None:
            names.append(name)
            found.add(wrong)
    return own is not None, names, found


def _wrong_profile(security: Obj, field: str) -> str | None:
    profile = security.get(field)
    if profile is None:
        return None
    kind = str(profile.get("type", ""))
    return None if kind in _PROFILES else kind


def app_armor(pod: SecuredPod) -> Violation | None:
    is_pod, names, found = _setting(pod, lambda security: _wrong_profile(security, "appArmorProfile"))
    annotations = sorted(
        f"{key}={shown(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(_APP_ARMOR) and not _is_app_armor(value)
    )
    who = [text for text in (setters(is_pod, names),) if text]
    if annotations:
        who.append(plural(len(annotations), "annotation", "annotations"))
    if not who:
        return None
    values = [*sorted(found), *annotations]
    reason = plural(len(values), "forbidden AppArmor profile", "forbidden AppArmor profiles")
    return Violation(reason, f"{' and '.join(who)} must not set AppArmor profile type to {quoted(values)}")


def _is_app_armor(value: str) -> bool:
    return value in ("", "runtime/default") or value.startswith("localhost/")


def se_linux(*more: str) -> Check:
    allowed = {"", "container_t", "container_init_t", "container_kvm_t", *more}

    def check(pod: SecuredPod) -> Violation | None:
        wrong = [_se_linux_faults(pod.security, allowed)]
        wrong += [_se_linux_faults(security, allowed) for _, _, security in pod.containers]
        if not any(wrong):
            return None
        names = [name for (name, _, _), faults in zip(pod.containers, wrong[1:], strict=True) if faults]
        types = sorted({text for faults in wrong for kind, text in faults if kind == "type"})
        reported = [f"{plural(len(types), 'type', 'types')} {quoted(types)}"] if types else []
        kinds = {kind for faults in wrong for kind, _ in faults}
        reported += [f"{kind} may not be set" for kind in ("user", "role") if kind in kinds]
        who = setters(bool(wrong[0]), names)
        detail = f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(reported)}"
        return Violation("seLinuxOptions", detail)

    return check


def _se_linux_faults(security: Obj, allowed: set[str]) -> list[tuple[str, str]]:
    options = security.get("seLinuxOptions")
    if options is None:
        return []
    kind = options.get("type") or ""
    faults = [] if kind in allowed else [("type", kind)]
    return faults + [(field, options[field]) for field in ("user", "role") if options.get(field)]


def seccomp_annotations(pod: SecuredPod) -> Violation | None:
    keys = [SECCOMP_POD, *(SECCOMP_CONTAINER + name for name, _, _ in pod.containers)]
    wrong = sorted({f"{key}={shown(pod.annotations[key])}" for key in keys if _is_wrong_seccomp(pod, key)})
    if not wrong:
        return None
    return Violation(
        "seccompProfile", f"forbidden {plural(len(wrong), 'annotation', 'annotations')} {', '.join(wrong)}"
    )


def _is_wrong_seccomp(pod: SecuredPod, key: str) -> bool:
    value = pod.annotations.get(key)
    if value is None or value in ("runtime/default", "docker/default"):
        return False
    return not value.startswith("localhost/")


def seccomp(pod: SecuredPod) -> Violation | None:
    is_pod, names, found = _setting(pod, lambda security: _wrong_profile(security, "seccompProfile"))
    who = setters(is_pod, names)
    if not who:
        return None
    detail = f"{who} must not set securityContext.seccompProfile.type to {quoted(sorted(found))}"
    return Violation("seccompProfile", detail)


def seccomp_required(pod: SecuredPod) -> Violation | None:
    explicit = seccomp(pod)
    if explicit is not None or pod.security.get("seccompProfile") is not None:
        return explicit
    names = [name for name, _, security in pod.containers if security.get("seccompProfile") is None]
    if not names:
        return None
    wanted = 'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {containers(names)} must set {wanted}")


def sysctls(*more: str) -> Check:
    allowed = {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
        *more,
    }

    def check(pod: SecuredPod) -> Violation | None:
        wrong = list(_unsafe(pod, allowed))
        return Violation("forbidden sysctls", ", ".join(wrong)) if wrong else None

    return check


def _unsafe(pod: SecuredPod, allowed: set[str]) -> Iterator[str]:
    for sysctl in pod.security.get("sysctls") or ():
        if sysctl.get("name") not in allowed:
            yield str(sysctl.get("name"))


def windows_host_process(pod: SecuredPod) -> Violation | None:
    def is_host_process(security: Obj) -> str | None:
        return "true" if (security.get("windowsOptions") or {}).get("hostProcess") else None

    is_pod, names, _ = _setting(pod, is_host_process)
    who = setters(is_pod, names)
    if not who:
        return None
    return Violation("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true")
