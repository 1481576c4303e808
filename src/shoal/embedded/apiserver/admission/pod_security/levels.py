"""The three levels in every version: which checks count, and what they find in a pod.

A namespace may pin a level to the version it was tested with (`restricted:v1.24`). Each check lists from which minor
version on which form of it counts; a check of `restricted` may represent one of `baseline` that it includes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

from shoal.embedded.apiserver.admission.pod_security import baseline, profiles, restricted
from shoal.embedded.apiserver.admission.pod_security.pod import Check, SecuredPod, Violation

Level = Literal["privileged", "baseline", "restricted"]
LEVELS: tuple[Level, ...] = ("privileged", "baseline", "restricted")
LATEST = -1


class Standard(NamedTuple):
    """A level in a version; `minor` is LATEST where none is pinned."""

    level: Level = "privileged"
    minor: int = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"


class _Rule(NamedTuple):
    forms: tuple[tuple[int, Check], ...]
    """Each form with the first minor version it counts in, in ascending order."""
    replaces: str = ""

    def at(self, minor: int) -> Check | None:
        found = [check for first, check in self.forms if first <= minor]
        return found[-1] if found else None


_SINCE_27 = ("net.ipv4.ip_local_reserved_ports",)
_SINCE_29 = (
    *_SINCE_27,
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
)
_SINCE_32 = (*_SINCE_29, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")

_BASELINE: dict[str, _Rule] = {
    "appArmorProfile": _Rule(((0, profiles.app_armor),)),
    "capabilities_baseline": _Rule(((0, baseline.capabilities),)),
    "hostNamespaces": _Rule(((0, baseline.host_namespaces),)),
    "hostPathVolumes": _Rule(((0, baseline.host_path_volumes),)),
    "hostPorts": _Rule(((0, baseline.host_ports),)),
    "hostProbesAndHostLifecycle": _Rule(((34, baseline.host_probes),)),
    "privileged": _Rule(((0, baseline.privileged),)),
    "procMount": _Rule(((0, baseline.proc_mount), (35, baseline.proc_mount_with_own_users))),
    "seLinuxOptions": _Rule(((0, profiles.se_linux()), (31, profiles.se_linux("container_engine_t")))),
    "seccompProfile_baseline": _Rule(((0, profiles.seccomp_annotations), (19, profiles.seccomp))),
    "sysctls": _Rule(
        (
            (0, profiles.sysctls()),
            (27, profiles.sysctls(*_SINCE_27)),
            (29, profiles.sysctls(*_SINCE_29)),
            (32, profiles.sysctls(*_SINCE_32)),
        )
    ),
    "windowsHostProcess": _Rule(((0, profiles.windows_host_process),)),
}

_escalation, _capabilities = restricted.privilege_escalation, restricted.capabilities
_seccomp = profiles.seccomp_required

_RESTRICTED: dict[str, _Rule] = {
    "allowPrivilegeEscalation": _Rule(((8, _escalation), (25, restricted.not_on_windows(_escalation)))),
    "capabilities_restricted": _Rule(
        ((22, _capabilities), (25, restricted.not_on_windows(_capabilities))), "capabilities_baseline"
    ),
    "procMount_restricted": _Rule(((35, baseline.proc_mount),), "procMount"),
    "restrictedVolumes": _Rule(((0, restricted.volumes),), "hostPathVolumes"),
    "runAsNonRoot": _Rule(((0, restricted.non_root), (35, restricted.not_with_own_users(restricted.non_root)))),
    "runAsUser": _Rule(((23, restricted.user), (35, restricted.not_with_own_users(restricted.user)))),
    "seccompProfile_restricted": _Rule(
        ((19, _seccomp), (25, restricted.not_on_windows(_seccomp))), "seccompProfile_baseline"
    ),
}

_NEWEST = max(first for rule in (*_BASELINE.values(), *_RESTRICTED.values()) for first, _ in rule.forms)


def violations(standard: Standard, pod: SecuredPod) -> list[Violation]:
    found = [check(pod) for check in _checks(standard.level, standard.minor)]
    return [one for one in found if one is not None]


def reasons(found: list[Violation]) -> str:
    return ", ".join(one.reason for one in found)


def details(found: list[Violation]) -> str:
    return ", ".join(f"{one.reason} ({one.detail})" if one.detail else one.reason for one in found)


@lru_cache(maxsize=256)
def _checks(level: Level, minor: int) -> tuple[Check, ...]:
    if level == "privileged":
        return ()
    at = _NEWEST if minor == LATEST else min(minor, _NEWEST)
    strict = {name: check for name, rule in _RESTRICTED.items() if (check := rule.at(at)) is not None}
    if level == "baseline":
        strict = {}
    replaced = {_RESTRICTED[name].replaces for name in strict}
    plain = [rule.at(at) for name, rule in _BASELINE.items() if name not in replaced]
    return (*(check for check in plain if check is not None), *strict.values())
