"""All objects of an installation, in the order in which they are applied.

The order is by stages: what a stage needs is there and ready before it begins, and a stage that fails leaves nothing
behind that refers to something missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from shoal.data.permissions import PARTS, POD_AUTOSCALING
from shoal.install.cluster_policy import cluster_policy, component_configs, default_driver
from shoal.install.objects.agent_access import OPERAND_ACCOUNTS, agent_policies
from shoal.install.objects.certificates import certificate_objects, has_issued_certificate
from shoal.install.objects.configuration import operator_config, scheduler_config, scheduling_parts
from shoal.install.objects.deployments import (
    HISTORY_PART,
    OBSERVER_PART,
    OPERATOR_PART,
    SCHEDULER,
    operator_deployment,
    scheduler_deployment,
)
from shoal.install.objects.history import check_alerts, check_web, history_objects, web_objects
from shoal.install.objects.network import network_objects
from shoal.install.objects.observer import observer_objects
from shoal.install.objects.permissions import OPERATOR, RoleSubjects, manifests, own_permissions, without_secrets
from shoal.install.objects.pod_autoscaling import pod_autoscaling_objects
from shoal.install.release import Release
from shoal.install.values.reading import ChartValues

Obj = dict[str, Any]
ENFORCE = "pod-security.kubernetes.io/enforce"
USUAL_NODES = 100
"""The size of a cluster for resource requests where it is not known."""

STAGES = ("namespace", "definitions", "permissions", "configuration", "workloads", "GPU stack")
_STAGE_OF = {
    "Namespace": "namespace",
    "CustomResourceDefinition": "definitions",
    **dict.fromkeys(
        ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
        "permissions",
    ),
    "Deployment": "workloads",
    "ClusterPolicy": "GPU stack",
    "NVIDIADriver": "GPU stack",
}


class Address(NamedTuple):
    """An object by its kind and name, as an inventory lists it."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        group, slash, _ = self.api_version.partition("/")
        kind = f"{self.kind}.{group}" if slash and "." in group else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


def stays_with_data(kind: str) -> bool:
    """Whether objects of the kind are removed only by `shoal uninstall`, after a question if there is data in them: an
    upgrade or a way back never removes them."""
    return kind in ("CustomResourceDefinition", "PersistentVolumeClaim")


def address_of(obj: Obj) -> Address:
    meta = obj["metadata"]
    return Address(obj["apiVersion"], obj["kind"], meta.get("namespace", ""), meta["name"])


def stage_of(kind: str) -> str:
    return _STAGE_OF.get(kind, "configuration")


def manifest(
    release: Release, values: ChartValues, definitions: Iterable[Obj] = (), nodes: int = USUAL_NODES
) -> list[Obj]:
    """`definitions`: CustomResourceDefinitions of the projects that the values name. Raises UserError."""
    labels = values.get("labels")
    if values.get("observe.enabled"):
        observing = [(OBSERVER_PART, one) for one in observer_objects(release, values, nodes)]
        alone = [("namespace", namespace_of(release, values)), *observing]
        return ordered([release.labelled(obj, component, labels) for component, obj in alone])
    has_operator = values.get("operator.enabled")
    parts = scheduling_parts(values)
    config = scheduler_config(release, values)
    found: list[tuple[str, Obj]] = [("namespace", namespace_of(release, values))]
    found += [("definitions", one) for one in definitions]
    granted = manifests([part for part in parts if part in PARTS], RoleSubjects(release.namespace))
    if has_issued_certificate(values):
        granted = without_secrets(granted)
    found += [(SCHEDULER, one) for one in granted if one["kind"] != "Namespace"]
    found += [(SCHEDULER, one) for one in certificate_objects(release, values)]
    found += [(SCHEDULER, config), *network_objects(release, values)]
    found.append((SCHEDULER, scheduler_deployment(release, values, config, nodes)))
    check_alerts(values)
    check_web(values)
    if values.get("history.enabled"):
        found += [(HISTORY_PART, one) for one in history_objects(release, values, nodes)]
    if values.get("web.enabled"):
        found += [("web", one) for one in web_objects(release, values)]
    if has_operator:
        own = operator_config(release)
        found += [(OPERATOR_PART, one) for one in own_permissions(OPERATOR_PART, OPERATOR, release.namespace)]
        found += [("agent", one) for one in agent_policies(release.namespace, OPERAND_ACCOUNTS)]
        found += [(OPERATOR_PART, own), (OPERATOR_PART, operator_deployment(release, values, own, nodes))]
        found += [("gpu-stack", one) for one in component_configs(values, release.namespace)]
        found += [("gpu-stack", one) for one in (cluster_policy(values), *default_driver(values))]
    found += [(POD_AUTOSCALING, one) for one in pod_autoscaling_objects(release, values, nodes)]
    return ordered([release.labelled(obj, component, labels) for component, obj in found])


def ordered(objects: Sequence[Obj]) -> list[Obj]:
    """By stages; within a stage in the given order."""
    return sorted(objects, key=lambda obj: STAGES.index(stage_of(obj["kind"])))


def namespace_of(release: Release, values: ChartValues) -> Obj:
    """The driver's container is privileged; without the GPU stack no pod needs more than the level `restricted`."""
    has_stack = values.get("operator.enabled") and not values.get("observe.enabled")
    level = "privileged" if has_stack else "restricted"
    meta: Obj = {"name": release.namespace, "labels": {ENFORCE: level}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
