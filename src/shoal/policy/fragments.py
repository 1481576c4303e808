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
    keys = frozenset(value)
    if keys <= _CONTAINER:
        return f"a fragment of a container ({_named(value)})"
    if keys <= _POD_SPEC:
        return f"a fragment of a pod spec ({_named(value)})"
    inner = value.get("spec")
    if keys == {"spec"} and isinstance(inner, dict) and frozenset(inner) <= _POD_SPEC:
        return f"a fragment of a pod (spec: {_named(inner)})"
    if "groups" in keys and all("rules" in group for group in maps(value["groups"])):
        return "a file of Prometheus rules"
    return f"a map with the fields {_named(value)}, perhaps values of a Helm chart"


def _named(value: dict[str, Any]) -> str:
    names = list(map(str, value))
    return ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
