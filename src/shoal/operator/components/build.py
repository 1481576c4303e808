"""Builds the objects around the pods of a component: the DaemonSet with the fields that the policy sets for all of
them, the account and its roles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from shoal.operator.components.component import Component
from shoal.operator.components.facts import FleetFacts, OperatorSettings
from shoal.operator.components.images import nvidia_image
from shoal.operator.components.pods import ContainerParts, Env, Mount, PodParts
from shoal.operator.policy.operands import ImageFields, Obj, Operand
from shoal.operator.policy.spec import ClusterPolicySpec

VALIDATIONS = "/run/nvidia/validations"
"""The folder of the host in which a file says that a layer of the node works."""
_RBAC = "rbac.authorization.k8s.io"
_TEN_DIGITS = 10
Rule = tuple[str, str, str]
"""API group, resources and verbs, the latter two separated by commas."""


class Pool(msgspec.Struct, frozen=True):
    """Some of the nodes of a component."""

    suffix: str = ""
    """Of the name of the DaemonSet."""
    labels: dict[str, str] = {}
    """By which the pods of the DaemonSet differ from those of the others."""
    nodes: dict[str, str] = {}
    """Labels of the nodes."""


class Building(msgspec.Struct, frozen=True):
    """What the builders of all components read."""

    spec: ClusterPolicySpec
    facts: FleetFacts
    settings: OperatorSettings

    @property
    def namespace(self) -> str:
        return self.settings.namespace


def runs_own_image(operand: ImageFields) -> bool:
    """Whether the component runs Shoal's image."""
    return not operand.is_named


def image_of(build: Building, component: Component, operand: ImageFields) -> str:
    if runs_own_image(operand):
        return build.settings.image
    return nvidia_image(component.field, operand).text()


def pull_policy_of(build: Building, operand: ImageFields) -> str:
    return operand.image_pull_policy or (
        build.settings.image_pull_policy if runs_own_image(operand) else "IfNotPresent"
    )


def pull_secrets_of(build: Building, operand: ImageFields) -> tuple[str, ...]:
    return operand.image_pull_secrets or (build.settings.image_pull_secrets if runs_own_image(operand) else ())


def object_labels(component: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "shoal",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/managed-by": "shoal-operator",
    }


def named(api_version: str, kind: str, name: str, namespace: str = "", component: str = "") -> Obj:
    """`namespace`: empty for objects of the whole cluster."""
    meta: Obj = {"name": name, "labels": object_labels(component or name)}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}


def daemon_set(
    build: Building,
    component: Component,
    pod: PodParts,
    strategy: Literal["", "OnDelete"] = "",
    pool: Pool | None = None,
) -> Obj:
    """`pool`: the nodes of this DaemonSet, where a component has several."""
    common, pool = build.spec.daemonsets, pool or Pool()
    own = {"app": component.name, **pool.labels}
    labels = {**common.labels, **object_labels(component.name), **own}
    annotations = {"annotations": dict(common.annotations)} if common.annotations else {}
    found = named("apps/v1", "DaemonSet", component.name + pool.suffix, build.namespace, component.name)
    found["metadata"] |= {"labels": labels, **annotations}
    spec = pod.to_api() | {"serviceAccountName": component.service_account}
    nodes = {**component.node_selector, **pool.nodes}
    if nodes:
        spec["nodeSelector"] = nodes
    # A component of all nodes must also run on nodes with taints that are not known.
    spec["tolerations"] = [dict(one) for one in common.tolerations] if component.deploy else [{"operator": "Exists"}]
    if common.priority_class_name:
        spec["priorityClassName"] = common.priority_class_name
    found["spec"] = {
        "selector": {"matchLabels": own},
        "updateStrategy": _strategy(build, strategy),
        "template": {"metadata": {"labels": labels, **annotations}, "spec": spec},
    }
    return found


def _strategy(build: Building, own: str) -> Obj:
    common = build.spec.daemonsets
    if "OnDelete" in (own, common.update_strategy):
        return {"type": "OnDelete"}
    most = common.rolling_update.max_unavailable
    if isinstance(most, str) and most.isascii() and most.isdigit() and len(most) < _TEN_DIGITS:
        most = int(most)
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most}}


def access(
    build: Building, component: Component, own: Sequence[Rule] = (), everywhere: Sequence[Rule] = ()
) -> list[Obj]:
    """The account of the pods, with its rights in the operator's namespace and in the whole cluster."""
    account, namespace = component.service_account, build.namespace
    found = [named("v1", "ServiceAccount", account, namespace, component.name)]
    for kind, rules in (("Role", own), ("ClusterRole", everywhere)):
        if not rules:
            continue
        at = namespace if kind == "Role" else ""
        role = named(f"{_RBAC}/v1", kind, account, at, component.name)
        role["rules"] = [_rule(one) for one in rules]
        binding = named(f"{_RBAC}/v1", f"{kind}Binding", account, at, component.name)
        binding["roleRef"] = {"apiGroup": _RBAC, "kind": kind, "name": account}
        binding["subjects"] = [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]
        found += [role, binding]
    return found


def _rule(rule: Rule) -> Obj:
    group, resources, verbs = rule
    return {"apiGroups": [group], "resources": resources.split(","), "verbs": verbs.split(",")}


def validations_mount(*, is_read_only: bool = True) -> Mount:
    propagation: Literal["HostToContainer", "Bidirectional"] = "HostToContainer" if is_read_only else "Bidirectional"
    return Mount("run-nvidia-validations", VALIDATIONS, VALIDATIONS, "DirectoryOrCreate", propagation=propagation)


def waits_for(build: Building, layer: str) -> tuple[ContainerParts, ...]:
    """The init container that ends when the validator has found the layer to work; none without a validator."""
    validator = build.spec.validator
    if not validator.enabled:
        return ()
    return (
        ContainerParts(
            name=f"{layer}-validation",
            image=image_of(build, _VALIDATOR, validator),
            pull_policy=pull_policy_of(build, validator),
            command=()
            if runs_own_image(validator)
            else ("sh", "-c", f"until [ -f {VALIDATIONS}/{layer}-ready ]; do echo waiting for {layer}; sleep 5; done"),
            args=("agent", "validate", "--wait-for", layer, "--ready-dir", VALIDATIONS)
            if runs_own_image(validator)
            else (),
            mounts=(validations_mount(),),
        ),
    )


_VALIDATOR = Component("", "", "validator")


def own_agent(
    build: Building,
    name: str,
    operand: Operand,
    args: tuple[str, ...],
    env: Env | None = None,
    mounts: tuple[Mount, ...] = (),
) -> ContainerParts:
    """A container of Shoal's image; the arguments of the policy are added to those of the command."""
    return ContainerParts(
        name=name,
        image=build.settings.image,
        pull_policy=pull_policy_of(build, operand),
        args=("agent", *args, *operand.args),
        env=env or {},
        mounts=mounts,
        resources=operand.resources,
    )
