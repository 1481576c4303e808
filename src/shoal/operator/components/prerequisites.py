"""Builds the objects that the pods of the components need: runtime classes, and the labels of the namespace."""

from __future__ import annotations

from shoal.operator.components.build import Building, named
from shoal.operator.policy.operands import Obj

_LEVELS = ("enforce", "audit", "warn")


def runtime_classes(build: Building) -> list[Obj]:
    operator = build.spec.operator
    names = [operator.runtime_class]
    if build.spec.cdi.enabled:
        names += [f"{operator.runtime_class}-cdi", f"{operator.runtime_class}-legacy"]
    found = []
    for name in names:
        one = named("node.k8s.io/v1", "RuntimeClass", name, component="runtime-class")
        one["metadata"]["labels"] = {**operator.labels, **one["metadata"]["labels"]}
        if operator.annotations:
            one["metadata"]["annotations"] = dict(operator.annotations)
        one["handler"] = name
        found.append(one)
    return found


def namespace_labels(build: Building) -> list[Obj]:
    """The pods of the components are privileged. The namespace itself is not created and never deleted."""
    if not build.spec.psa.enabled:
        return []
    labels = {f"pod-security.kubernetes.io/{level}": "privileged" for level in _LEVELS}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": build.namespace, "labels": labels}}]
