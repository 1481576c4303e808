"""Says what a document without apiVersion and kind is: part of a manifest, values of a chart, rules of Prometheus."""

from __future__ import annotations

from typing import Any

from shoal.policy.fields import maps

_CONTAINER = frozenset(
    {
        *("name", "image", "imagePullPolicy", "command", "args", "workingDir", "env", "envFrom", "ports", "resources"),
        *("volumeMounts", "livenessProbe", "readinessProbe", "startupProbe", "securityContext", "lifecycle"),
    }
)
_POD_SPEC = frozenset(
    {
        *("containers", "initContainers", "volumes", "nodeSelector", "affinity", "tolerations", "nodeName"),
        *("terminationGracePeriodSeconds", "restartPolicy", "priorityClassName", "schedulerName", "serviceAccountName"),
        *("topologySpreadConstraints", "runtimeClassName", "hostNetwork", "hostIPC", "securityContext"),
    }
)
_MOST_NAMED = 4


def described(value: Any) -> str:
    """What the document probably is, in a few words."""
    if isinstance(value, list):
        rules = maps(value)
        if rules and all("alert" in rule or "record" in rule for rule in rules):
            return "a list of Prometheus rules without a PrometheusRule around them"
        return "a list"
    if not isinstance(value, dict):
        return "text"
    if is_container(value):
        return f"a fragment of a container ({_named(value)})"
    if is_pod_spec(value):
        return f"a fragment of a pod spec ({_named(value)})"
    if is_pod(value):
        return f"a fragment of a pod (spec: {_named(value['spec'])})"
    if "groups" in value and all("rules" in group for group in maps(value["groups"])):
        return "a file of Prometheus rules"
    return f"a map with the fields {_named(value)}, perhaps values of a Helm chart"


def is_container(value: dict[str, Any]) -> bool:
    return bool(value) and frozenset(value) <= _CONTAINER


def is_pod_spec(value: dict[str, Any]) -> bool:
    return bool(value) and frozenset(value) <= _POD_SPEC


def is_pod(value: dict[str, Any]) -> bool:
    """With nothing but a spec."""
    inner = value.get("spec")
    return value.keys() == {"spec"} and isinstance(inner, dict) and is_pod_spec(inner)


def _named(value: dict[str, Any]) -> str:
    names = list(map(str, value))
    return ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
