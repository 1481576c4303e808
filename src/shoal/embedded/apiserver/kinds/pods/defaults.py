"""Sets the defaults of a pod or pod template spec.

Some defaults belong to pods only (`enableServiceLinks`, requests taken from limits): in templates they would change
what every workload of an older cluster looks like, so Kubernetes fills them in when the pod is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.embedded.apiserver.kinds.complaints import Obj
from shoal.embedded.apiserver.kinds.pods.aggregate import pod_level_defaults
from shoal.embedded.apiserver.kinds.pods.images import pull_policy
from shoal.embedded.apiserver.kinds.pods.volume_defaults import default_field_reference, default_volume
from shoal.units.quantity import NANO_PER_MILLI, Quantity

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")


def default_pod(pod: Obj) -> None:
    spec = pod.setdefault("spec", {})
    default_pod_spec(spec)
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or ():
            if limits := container["resources"].get("limits"):
                requests = container["resources"].setdefault("requests", {})
                for name, amount in limits.items():
                    requests.setdefault(name, amount)
    if "resources" in spec:
        pod_level_defaults(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        # Of a pod, not of a template: there the value stays, with a warning.
        spec["terminationGracePeriodSeconds"] = 1
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        _take_host_ports(spec)


def default_template(template: Obj) -> None:
    template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}))


def default_pod_spec(spec: Obj) -> None:
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    # The old and the new name of the same field are kept equal, whichever of them was written.
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for key in CONTAINER_LISTS:
        for container in spec.get(key) or ():
            _default_container(container)
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    _round_up(spec.get("overhead"))


def _default_container(container: Obj) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    if resources := container.get("resources"):
        _round_up(resources.get("limits"))
        _round_up(resources.get("requests"))
    else:
        container["resources"] = {}
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        if source := variable.get("valueFrom"):
            default_field_reference(source.get("fieldRef"))
            if "resourceFieldRef" in source:
                source["resourceFieldRef"].setdefault("divisor", "0")
    for key in _PROBES:
        if (probe := container.get(key)) is not None:
            _default_probe(probe)
    if lifecycle := container.get("lifecycle"):
        _default_http(handler.get("httpGet") for handler in lifecycle.values() if isinstance(handler, dict))
    if (context := container.get("securityContext")) and context.get("procMount") == "":
        context["procMount"] = "Default"


def _default_probe(probe: Obj) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(key):
            probe[key] = value
    _default_http((probe.get("httpGet"),))
    if "grpc" in probe:
        probe["grpc"].setdefault("service", "")


def _default_http(actions: Iterable[Obj | None]) -> None:
    for action in actions:
        if action is not None:
            if not action.get("path"):
                action["path"] = "/"
            if not action.get("scheme"):
                action["scheme"] = "HTTP"


def _round_up(amounts: dict[str, Any] | None) -> None:
    """Nothing finer than a thousandth is kept."""
    if not amounts:
        return
    for name, amount in _fine(amounts):
        value = Quantity.parse(amount)
        amounts[name] = str(Quantity(value.milli_value() * NANO_PER_MILLI, value.format))


def _fine(amounts: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, amount) for name, amount in amounts.items() if amount[-1:] in ("n", "u")]


def _take_host_ports(spec: Obj) -> None:
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort") and "containerPort" in port:
                    port["hostPort"] = port["containerPort"]
