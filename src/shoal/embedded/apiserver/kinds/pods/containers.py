"""Checks of the containers of a pod spec: ordinary, init (with sidecars) and ephemeral."""

from __future__ import annotations

import msgspec

from shoal.embedded.apiserver.field_errors import (
    bad_value,
    duplicate,
    missing_reference,
    not_allowed,
    not_supported,
    required,
)
from shoal.embedded.apiserver.kinds.amounts import check_resources
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults, add_unsupported
from shoal.embedded.apiserver.kinds.pods.environment import (
    check_environment,
    check_environment_from,
    check_host_ports,
    check_ports,
)
from shoal.embedded.apiserver.kinds.pods.probes import check_lifecycle, check_probe
from shoal.embedded.apiserver.kinds.pods.security import check_container_security
from shoal.embedded.apiserver.kinds.pods.volumes import check_devices, check_mounts
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTARTS = ("Always", "OnFailure", "Never")
_PROBES = (("livenessProbe", True), ("readinessProbe", False), ("startupProbe", True))
_NOT_FOR_INIT = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL = ("lifecycle", "livenessProbe", "ports", "readinessProbe", "resizePolicy", "resources", "startupProbe")


class Surroundings(msgspec.Struct, frozen=True):
    """What the checks of one container ask of the pod around it."""

    volumes: frozenset[str] | None
    """None where volumes are added later."""
    claims: frozenset[str]
    restart_policy: str
    grace_s: int


def surroundings(spec: Obj, volumes: frozenset[str] | None) -> Surroundings:
    listed = spec.get("resourceClaims")
    claims = frozenset(claim.get("name", "") for claim in listed) if listed else frozenset()
    grace_s = spec.get("terminationGracePeriodSeconds", 30)
    return Surroundings(volumes, claims, spec.get("restartPolicy", ""), grace_s)


def check_containers(containers: list[Obj], path: str, around: Surroundings, errors: Errors) -> None:
    if not containers:
        errors.append(required(path))
        return
    names: set[str] = set()
    has_host_ports = False
    for place, container in enumerate(containers):
        here = f"{path}[{place}]"
        _check_common(container, here, around, errors)
        if (name := container.get("name", "")) in names:
            errors.append(duplicate(f"{here}.name", name))
        names.add(name)
        _check_restart(container, here, errors)
        if "lifecycle" in container:
            check_lifecycle(container["lifecycle"], f"{here}.lifecycle", around.grace_s, errors)
        for key, once in _PROBES:
            if (probe := container.get(key)) is not None:
                check_probe(probe, f"{here}.{key}", errors, once=once, grace_s=around.grace_s)
        has_host_ports = has_host_ports or "ports" in container
    if has_host_ports:
        check_host_ports(containers, path, errors)


def check_init_containers(
    containers: list[Obj], others: list[Obj], path: str, around: Surroundings, errors: Errors
) -> None:
    names = {container.get("name", "") for container in others}
    for place, container in enumerate(containers):
        here = f"{path}[{place}]"
        _check_common(container, here, around, errors)
        _check_restart(container, here, errors)
        if (name := container.get("name", "")) in names:
            errors.append(duplicate(f"{here}.name", name))
        elif name:
            names.add(name)
        if container.get("restartPolicy") == "Always":
            if "lifecycle" in container:
                check_lifecycle(container["lifecycle"], f"{here}.lifecycle", around.grace_s, errors)
            for key, once in _PROBES:
                if (probe := container.get(key)) is not None:
                    check_probe(probe, f"{here}.{key}", errors, once=once, grace_s=around.grace_s)
            continue
        for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(key) is not None:
                errors.append(not_allowed(f"{here}.{key}", _NOT_FOR_INIT))
    check_host_ports(containers, path, errors)


def check_ephemeral_containers(spec: Obj, path: str, around: Surroundings, errors: Errors) -> None:
    """They join a running pod, so what is decided before it runs cannot be theirs."""
    known = {one.get("name", "") for key in ("containers", "initContainers") for one in spec.get(key) or ()}
    targets = frozenset(known)
    for place, container in enumerate(spec.get("ephemeralContainers") or ()):
        here = f"{path}[{place}]"
        _check_common(container, here, around, errors)
        if (name := container.get("name", "")) in known:
            errors.append(duplicate(f"{here}.name", name))
        known.add(name)
        target = container.get("targetContainerName", "")
        if target and target not in targets:
            errors.append(missing_reference(f"{here}.targetContainerName", target))
        for key in _NOT_EPHEMERAL:
            if container.get(key):
                errors.append(not_allowed(f"{here}.{key}", "cannot be set for an Ephemeral Container"))
        for position, mount in enumerate(container.get("volumeMounts") or ()):
            for key in ("subPath", "subPathExpr"):
                if mount.get(key):
                    words = "cannot be set for an Ephemeral Container"
                    errors.append(not_allowed(f"{here}.volumeMounts[{position}].{key}", words))


def _check_common(container: Obj, path: str, around: Surroundings, errors: Errors) -> None:
    get = container.get
    name = get("name", "")
    if not name:
        errors.append(required(f"{path}.name"))
    elif faults := dns_label_faults(name):
        add_faults(errors, f"{path}.name", name, faults)
    if not get("image"):
        errors.append(required(f"{path}.image"))
    if (policy := get("terminationMessagePolicy")) not in ("File", "FallbackToLogsOnError"):
        _complain_of_message_policy(policy or "", f"{path}.terminationMessagePolicy", errors)
    if ports := get("ports"):
        check_ports(ports, f"{path}.ports", errors)
    if variables := get("env"):
        check_environment(variables, f"{path}.env", around.volumes, errors)
    if sources := get("envFrom"):
        check_environment_from(sources, f"{path}.envFrom", errors)
    if get("volumeMounts"):
        check_mounts(container, around.volumes, path, errors)
    if get("volumeDevices"):
        check_devices(container, around.volumes, path, errors)
    if get("imagePullPolicy") not in _PULL_POLICIES:
        add_unsupported(errors, f"{path}.imagePullPolicy", get("imagePullPolicy"), _PULL_POLICIES)
    if resources := get("resources"):
        check_resources(resources, f"{path}.resources", around.claims, errors)
    if policies := get("resizePolicy"):
        _check_resize_policy(policies, f"{path}.resizePolicy", around.restart_policy, errors)
    if context := get("securityContext"):
        check_container_security(context, f"{path}.securityContext", errors)


def _complain_of_message_policy(policy: str, path: str, errors: Errors) -> None:
    words = "must be 'File' or 'FallbackToLogsOnError'"
    errors.append(bad_value(path, policy, words) if policy else required(path, words))


def _check_restart(container: Obj, path: str, errors: Errors) -> None:
    policy = container.get("restartPolicy")
    if policy is not None and policy not in _RESTARTS:
        errors.append(not_supported(f"{path}.restartPolicy", policy, _RESTARTS))
    if container.get("restartPolicyRules") and policy is None:
        errors.append(required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"))


def _check_resize_policy(policies: list[Obj], path: str, restart_policy: str, errors: Errors) -> None:
    seen: set[str] = set()
    for place, one in enumerate(policies):
        name, action = one.get("resourceName", ""), one.get("restartPolicy", "")
        here = f"{path}[{place}]"
        if name in seen:
            errors.append(duplicate(here, name))
        seen.add(name)
        add_unsupported(errors, f"{here}.resourceName", name, ("cpu", "memory"))
        add_unsupported(errors, f"{here}.restartPolicy", action, ("NotRequired", "RestartContainer"))
        if restart_policy == "Never" and action not in ("", "NotRequired"):
            words = "must be 'NotRequired' when `restartPolicy` is 'Never'"
            errors.append(bad_value(f"{here}.restartPolicy", action, words))
