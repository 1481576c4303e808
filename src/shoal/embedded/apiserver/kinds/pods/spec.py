"""Validates a whole pod spec, of a pod or of a template."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import bad_value, duplicate, not_allowed, required, too_long
from shoal.embedded.apiserver.kinds.amounts import check_amount, check_resource_name
from shoal.embedded.apiserver.kinds.complaints import (
    MAX_INT32,
    Errors,
    Obj,
    add_faults,
    add_out_of_range,
    add_unsupported,
)
from shoal.embedded.apiserver.kinds.labels import check_labels
from shoal.embedded.apiserver.kinds.pods.containers import (
    check_containers,
    check_ephemeral_containers,
    check_init_containers,
    surroundings,
)
from shoal.embedded.apiserver.kinds.pods.network import check_network
from shoal.embedded.apiserver.kinds.pods.placement import check_affinity, check_spread, check_tolerations
from shoal.embedded.apiserver.kinds.pods.security import check_host_namespaces, check_pod_security
from shoal.embedded.apiserver.kinds.pods.volumes import check_volumes
from shoal.embedded.apiserver.kinds.pods.whole import check_whole
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults, label_key_faults, subdomain_faults

_RESTARTS = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_NAMES = ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName")
_LONGEST_HOST = 64
_HOST_LABELS = ("hostname", "subdomain")


def check_pod_spec(spec: Obj, path: str, errors: Errors, *, late_volumes: bool = False) -> None:
    """With `late_volumes` mounts may name volumes that are added when the pod is made."""
    volumes = spec.get("volumes")
    known = check_volumes(volumes, f"{path}.volumes", errors) if volumes else frozenset()
    around = surroundings(spec, None if late_volumes else known)
    if "resourceClaims" in spec:
        _check_claims(spec["resourceClaims"], f"{path}.resourceClaims", errors)
    containers = spec.get("containers") or []
    check_containers(containers, f"{path}.containers", around, errors)
    if init := spec.get("initContainers"):
        check_init_containers(init, containers, f"{path}.initContainers", around, errors)
    if spec.get("ephemeralContainers"):
        check_ephemeral_containers(spec, f"{path}.ephemeralContainers", around, errors)
    if whole := spec.get("resources"):
        check_whole(spec, whole, f"{path}.resources", errors)
    if spec.get("restartPolicy") not in _RESTARTS:
        add_unsupported(errors, f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTARTS)
    if spec.get("dnsPolicy") not in _DNS:
        add_unsupported(errors, f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS)
    _check_placement(spec, path, errors)
    _check_rest(spec, path, errors)


def _check_placement(spec: Obj, path: str, errors: Errors) -> None:
    if labels := spec.get("nodeSelector"):
        check_labels(labels, f"{path}.nodeSelector", errors)
    check_pod_security(spec, path, errors)
    check_host_namespaces(spec, path, errors)
    if affinity := spec.get("affinity"):
        check_affinity(affinity, f"{path}.affinity", errors)
    for place, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType", "")
        add_faults(errors, f"{path}.readinessGates[{place}].conditionType", kind, label_key_faults(kind))
    if gates := spec.get("schedulingGates"):
        _check_gates(gates, f"{path}.schedulingGates", errors)
    if spread := spec.get("topologySpreadConstraints"):
        check_spread(spread, f"{path}.topologySpreadConstraints", errors)
    if tolerations := spec.get("tolerations"):
        check_tolerations(tolerations, f"{path}.tolerations", errors)


def _check_rest(spec: Obj, path: str, errors: Errors) -> None:
    for key in _NAMES:
        if (name := spec.get(key)) and (faults := subdomain_faults(name)):
            add_faults(errors, f"{path}.{key}", name, faults)
    if (deadline := spec.get("activeDeadlineSeconds")) is not None:
        add_out_of_range(errors, f"{path}.activeDeadlineSeconds", deadline, 1, MAX_INT32)
    for key in _HOST_LABELS:
        if (name := spec.get(key)) and (faults := dns_label_faults(name)):
            add_faults(errors, f"{path}.{key}", name, faults)
    if (name := spec.get("hostnameOverride")) is not None:
        _check_own_name(spec, name, f"{path}.hostnameOverride", errors)
    check_network(spec, path, errors)
    if (policy := spec.get("preemptionPolicy")) is not None:
        add_unsupported(errors, f"{path}.preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))
    for name, amount in (spec.get("overhead") or {}).items():
        check_resource_name(name, f"{path}.overhead[{name}]", errors)
        check_amount(name, amount, f"{path}.overhead[{name}]", errors)
    if (system := spec.get("os")) is not None:
        if not system.get("name"):
            errors.append(required(f"{path}.os.name"))
        else:
            add_unsupported(errors, f"{path}.os", system["name"], ("linux", "windows"))


def _check_own_name(spec: Obj, name: str, path: str, errors: Errors) -> None:
    """Of the name that a pod's hosts file and its hostname have instead of its own."""
    for key in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(key):
            errors.append(not_allowed(path, f"may not be specified when {key} is true"))
    if len(name) > _LONGEST_HOST:
        errors.append(too_long(path, _LONGEST_HOST))
    add_faults(errors, path, name, subdomain_faults(name))


def _check_gates(gates: list[Obj], path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for place, gate in enumerate(gates):
        name = gate.get("name", "")
        add_faults(errors, f"{path}[{place}]", name, label_key_faults(name))
        if name in seen:
            errors.append(duplicate(f"{path}[{place}]", name))
        seen.add(name)


def _check_claims(claims: list[Obj], path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for place, claim in enumerate(claims):
        here, name = f"{path}[{place}]", claim.get("name", "")
        if name in seen:
            errors.append(duplicate(f"{here}.name", name))
        elif not name:
            errors.append(required(f"{here}.name"))
        else:
            add_faults(errors, f"{here}.name", name, dns_label_faults(name))
        seen.add(name)
        given = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(key) is not None]
        first, second = "`resourceClaimName`", "`resourceClaimTemplateName`"
        if not given:
            errors.append(bad_value(here, claim, f"must specify one of: {first}, {second}"))
        elif len(given) > 1:
            errors.append(bad_value(here, claim, f"at most one of {first} or {second} may be specified"))
        for key in given:
            add_faults(errors, f"{here}.{key}", claim[key], subdomain_faults(claim[key]))


def check_only_pods(spec: Obj, errors: Errors) -> None:
    """What older templates may contain and pods may not."""
    for key in ("containers", "initContainers"):
        for place, container in enumerate(spec.get(key) or ()):
            image = container.get("image", "")
            if image != image.strip():
                words = "must not have leading or trailing whitespace"
                errors.append(bad_value(f"spec.{key}[{place}].image", image, words))
    if spec.get("ephemeralContainers"):
        errors.append(not_allowed("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        words = "cannot be set until all schedulingGates have been cleared"
        errors.append(not_allowed("spec.nodeName", words))
