"""Pods that keep or break each admission rule, and the verdicts of the rules' expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.admission_expressions import BASE, Expression, Variables
from shoal.policy.admission_rules.modes import RuleModes
from shoal.policy.admission_rules.policies import validating_policies

Obj = dict[str, Any]
GPU = "nvidia.com/gpu"
TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
SELECTOR = {"nvidia.com/gpu.present": "true"}


def container(gpus: int = 1, name: str = GPU, **more: Any) -> Obj:
    resources = {"resources": {"limits": {name: str(gpus)}, "requests": {name: str(gpus)}}} if gpus else {}
    return {"name": "main", "image": "registry.example/train:1", **resources, **more}


def pod(*containers: Obj, annotations: Mapping[str, str] | None = None, **spec: Any) -> Obj:
    """A pod that keeps every rule, unless the arguments say otherwise."""
    whole = {"tolerations": [TOLERATION], "nodeSelector": SELECTOR, "containers": list(containers or [container()])}
    meta = {"name": "p", "namespace": "team", **({"annotations": dict(annotations)} if annotations else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**whole, **spec}}


def deployment(made: Obj) -> Obj:
    template = {"metadata": made["metadata"], "spec": made["spec"]}
    meta = {"name": "d", "namespace": "team"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"template": template}}


def cron_job(made: Obj) -> Obj:
    inner = {"spec": {"template": {"metadata": made["metadata"], "spec": made["spec"]}}}
    meta = {"name": "c", "namespace": "team"}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": {"jobTemplate": inner}}


class CompiledRules:
    """The expressions of all policies, as an API server compiles them."""

    def __init__(self) -> None:
        self._policies: list[tuple[str, Variables, list[tuple[Expression, str]]]] = []
        for made in validating_policies(RuleModes()):
            spec = made.policy["spec"]
            if "variables" not in spec:
                continue
            variables = Variables(spec["variables"], BASE)
            assert not variables.faults
            visible = {**BASE, "variables": variables.kind}
            checks = [
                (Expression(each["expression"], visible, "bool"), each["message"]) for each in spec["validations"]
            ]
            assert not any(check.fault for check, _ in checks)
            self._policies.append((made.policy["metadata"]["name"], variables, checks))

    def refusals(self, obj: Obj, labels: Mapping[str, str], before: Obj | None = None) -> set[tuple[str, str]]:
        """The policies with the messages that refuse the object."""
        namespace = {"metadata": {"name": "team", "labels": dict(labels)}}
        scope = {"object": obj, "oldObject": before, "request": {}, "namespaceObject": namespace}
        found = set()
        for name, variables, checks in self._policies:
            bound = variables.bound(scope)
            found |= {(name, message) for check, message in checks if check.value(dict(bound)) is not True}
        return found
