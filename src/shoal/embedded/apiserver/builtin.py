"""Every resource that Kubernetes serves by default, as a table.

Clients learn all of this by discovery: names, short names, verbs and subresources are exactly those of Kubernetes, in
the order in which it lists groups (kubectl resolves a bare name to the first group that has it) and versions (the
preferred one first). Beta and alpha versions are off there, so they are off here; a caller asks for one by its name,
as `--runtime-config` does.

A kind that the chosen Kubernetes version does not know is left out: its schema says what exists. Rejected: one table
per version, of which most lines would be the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import msgspec

from shoal.embedded.apiserver.resource import Resource, Subresource
from shoal.embedded.apiserver.schema.node import Schema
from shoal.embedded.apiserver.strategy import GENERIC, Strategy


class Shapes(Protocol):
    """The schemas of one Kubernetes version. `of` raises LookupError for a kind that is not in it."""

    def of(self, group: str, version: str, kind: str) -> Schema: ...


_ALL = ("all",)
_EXTENSIONS = ("api-extensions",)
_CREATE = ("create",)
_READ = ("get", "list")
_NO_COLLECTION = ("create", "delete", "get", "list", "patch", "update", "watch")
_EVERY_VERB = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_CHANGE = ("get", "patch", "update")
_STREAM = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")

_STATUS = Subresource("status", _CHANGE)
_SCALE = Subresource("scale", _CHANGE, "Scale", "autoscaling", "v1")
_SCALED = (_SCALE, _STATUS)
_POD_SUBRESOURCES = (
    Subresource("attach", _STREAM, "PodAttachOptions", "", "v1"),
    Subresource("binding", _CREATE, "Binding", "", "v1"),
    Subresource("ephemeralcontainers", _CHANGE),
    Subresource("eviction", _CREATE, "Eviction", "policy", "v1"),
    Subresource("exec", _STREAM, "PodExecOptions", "", "v1"),
    Subresource("log", ("get",)),
    Subresource("portforward", _STREAM, "PodPortForwardOptions", "", "v1"),
    Subresource("proxy", _PROXY, "PodProxyOptions", "", "v1"),
    Subresource("resize", _CHANGE),
    _STATUS,
)


class BuiltinResource(msgspec.Struct, frozen=True):
    """One resource of a group. The plural and the kind come first; most kinds need nothing more."""

    plural: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = _EVERY_VERB
    stored: str = ""
    home_group: str | None = None


_CORE = (
    BuiltinResource("bindings", "Binding", verbs=_CREATE),
    BuiltinResource("componentstatuses", "ComponentStatus", False, ("cs",), verbs=_READ),
    BuiltinResource("configmaps", "ConfigMap", short=("cm",)),
    BuiltinResource("endpoints", "Endpoints", short=("ep",)),
    BuiltinResource("events", "Event", short=("ev",)),
    BuiltinResource("limitranges", "LimitRange", short=("limits",)),
    BuiltinResource(
        "namespaces",
        "Namespace",
        False,
        ("ns",),
        (Subresource("finalize", ("update",)), _STATUS),
        verbs=_NO_COLLECTION,
    ),
    BuiltinResource(
        "nodes", "Node", False, ("no",), (Subresource("proxy", _PROXY, "NodeProxyOptions", "", "v1"), _STATUS)
    ),
    BuiltinResource("persistentvolumeclaims", "PersistentVolumeClaim", short=("pvc",), subresources=(_STATUS,)),
    BuiltinResource("persistentvolumes", "PersistentVolume", False, ("pv",), (_STATUS,)),
    BuiltinResource("pods", "Pod", short=("po",), subresources=_POD_SUBRESOURCES, categories=_ALL),
    BuiltinResource("podtemplates", "PodTemplate"),
    BuiltinResource(
        "replicationcontrollers", "ReplicationController", short=("rc",), subresources=_SCALED, categories=_ALL
    ),
    BuiltinResource("resourcequotas", "ResourceQuota", short=("quota",), subresources=(_STATUS,)),
    BuiltinResource("secrets", "Secret"),
    BuiltinResource(
        "serviceaccounts",
        "ServiceAccount",
        short=("sa",),
        subresources=(Subresource("token", _CREATE, "TokenRequest", "authentication.k8s.io", "v1"),),
    ),
    BuiltinResource(
        "services",
        "Service",
        short=("svc",),
        subresources=(Subresource("proxy", _PROXY, "ServiceProxyOptions", "", "v1"), _STATUS),
        categories=_ALL,
    ),
)

_APPS = (
    BuiltinResource("controllerrevisions", "ControllerRevision"),
    BuiltinResource("daemonsets", "DaemonSet", short=("ds",), subresources=(_STATUS,), categories=_ALL),
    BuiltinResource("deployments", "Deployment", short=("deploy",), subresources=_SCALED, categories=_ALL),
    BuiltinResource("replicasets", "ReplicaSet", short=("rs",), subresources=_SCALED, categories=_ALL),
    BuiltinResource("statefulsets", "StatefulSet", short=("sts",), subresources=_SCALED, categories=_ALL),
)

_AUTHENTICATION = (
    BuiltinResource("selfsubjectreviews", "SelfSubjectReview", False, verbs=_CREATE),
    BuiltinResource("tokenreviews", "TokenReview", False, verbs=_CREATE),
)

_AUTHORIZATION = (
    BuiltinResource("localsubjectaccessreviews", "LocalSubjectAccessReview", verbs=_CREATE),
    BuiltinResource("selfsubjectaccessreviews", "SelfSubjectAccessReview", False, verbs=_CREATE),
    BuiltinResource("selfsubjectrulesreviews", "SelfSubjectRulesReview", False, verbs=_CREATE),
    BuiltinResource("subjectaccessreviews", "SubjectAccessReview", False, verbs=_CREATE),
)

_AUTOSCALING = (
    BuiltinResource(
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        short=("hpa",),
        subresources=(_STATUS,),
        categories=_ALL,
        stored="v2",
    ),
)

_BATCH = (
    BuiltinResource("cronjobs", "CronJob", short=("cj",), subresources=(_STATUS,), categories=_ALL),
    BuiltinResource("jobs", "Job", subresources=(_STATUS,), categories=_ALL),
)

_CERTIFICATES = (
    BuiltinResource(
        "certificatesigningrequests",
        "CertificateSigningRequest",
        False,
        ("csr",),
        (Subresource("approval", _CHANGE), _STATUS),
    ),
)

_NETWORKING = (
    BuiltinResource("ingressclasses", "IngressClass", False),
    BuiltinResource("ingresses", "Ingress", short=("ing",), subresources=(_STATUS,)),
    BuiltinResource("ipaddresses", "IPAddress", False, ("ip",)),
    BuiltinResource("networkpolicies", "NetworkPolicy", short=("netpol",)),
    BuiltinResource("servicecidrs", "ServiceCIDR", False, subresources=(_STATUS,)),
)

_RBAC = (
    BuiltinResource("clusterrolebindings", "ClusterRoleBinding", False),
    BuiltinResource("clusterroles", "ClusterRole", False),
    BuiltinResource("rolebindings", "RoleBinding"),
    BuiltinResource("roles", "Role"),
)

_STORAGE = (
    BuiltinResource("csidrivers", "CSIDriver", False),
    BuiltinResource("csinodes", "CSINode", False),
    BuiltinResource("csistoragecapacities", "CSIStorageCapacity"),
    BuiltinResource("storageclasses", "StorageClass", False, ("sc",)),
    BuiltinResource("volumeattachments", "VolumeAttachment", False, subresources=(_STATUS,)),
    BuiltinResource("volumeattributesclasses", "VolumeAttributesClass", False, ("vac",)),
)

_ADMISSION = (
    BuiltinResource("mutatingadmissionpolicies", "MutatingAdmissionPolicy", False, categories=_EXTENSIONS),
    BuiltinResource("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", False, categories=_EXTENSIONS),
    BuiltinResource("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False, categories=_EXTENSIONS),
    BuiltinResource(
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        False,
        subresources=(_STATUS,),
        categories=_EXTENSIONS,
    ),
    BuiltinResource(
        "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False, categories=_EXTENSIONS
    ),
    BuiltinResource("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False, categories=_EXTENSIONS),
)

_DEFINITIONS = (
    BuiltinResource(
        "customresourcedefinitions", "CustomResourceDefinition", False, ("crd", "crds"), (_STATUS,), _EXTENSIONS
    ),
)

_FLOWCONTROL = (
    BuiltinResource("flowschemas", "FlowSchema", False, subresources=(_STATUS,)),
    BuiltinResource("prioritylevelconfigurations", "PriorityLevelConfiguration", False, subresources=(_STATUS,)),
)

_DEVICES = (
    BuiltinResource("deviceclasses", "DeviceClass", False),
    BuiltinResource("resourceclaims", "ResourceClaim", subresources=(_STATUS,)),
    BuiltinResource("resourceclaimtemplates", "ResourceClaimTemplate"),
    BuiltinResource("resourceslices", "ResourceSlice", False),
)

_AGGREGATION = (BuiltinResource("apiservices", "APIService", False, subresources=(_STATUS,), categories=_EXTENSIONS),)
_EVENTS = (BuiltinResource("events", "Event", short=("ev",), home_group=""),)
_POLICY = (BuiltinResource("poddisruptionbudgets", "PodDisruptionBudget", short=("pdb",), subresources=(_STATUS,)),)

SERVED: tuple[tuple[str, str, tuple[BuiltinResource, ...]], ...] = (
    ("", "v1", _CORE),
    ("apiregistration.k8s.io", "v1", _AGGREGATION),
    ("apps", "v1", _APPS),
    ("events.k8s.io", "v1", _EVENTS),
    ("authentication.k8s.io", "v1", _AUTHENTICATION),
    ("authorization.k8s.io", "v1", _AUTHORIZATION),
    ("autoscaling", "v2", _AUTOSCALING),
    ("autoscaling", "v1", _AUTOSCALING),
    ("batch", "v1", _BATCH),
    ("certificates.k8s.io", "v1", _CERTIFICATES),
    ("networking.k8s.io", "v1", _NETWORKING),
    ("policy", "v1", _POLICY),
    ("rbac.authorization.k8s.io", "v1", _RBAC),
    ("storage.k8s.io", "v1", _STORAGE),
    ("admissionregistration.k8s.io", "v1", _ADMISSION),
    ("apiextensions.k8s.io", "v1", _DEFINITIONS),
    ("scheduling.k8s.io", "v1", (BuiltinResource("priorityclasses", "PriorityClass", False, ("pc",)),)),
    ("coordination.k8s.io", "v1", (BuiltinResource("leases", "Lease"),)),
    ("node.k8s.io", "v1", (BuiltinResource("runtimeclasses", "RuntimeClass", False),)),
    ("discovery.k8s.io", "v1", (BuiltinResource("endpointslices", "EndpointSlice"),)),
    ("resource.k8s.io", "v1", _DEVICES),
    ("flowcontrol.apiserver.k8s.io", "v1", _FLOWCONTROL),
)
"""Group, version and rows, in the order of discovery."""

ON_REQUEST: tuple[tuple[str, str, tuple[BuiltinResource, ...]], ...] = (
    ("scheduling.k8s.io", "v1alpha1", (BuiltinResource("workloads", "Workload"),)),
    (
        "scheduling.k8s.io",
        "v1alpha2",
        (BuiltinResource("podgroups", "PodGroup", subresources=(_STATUS,)), BuiltinResource("workloads", "Workload")),
    ),
)


def builtin_resources(
    shapes: Shapes,
    strategies: Mapping[tuple[str, str], Strategy],
    *,
    alpha: frozenset[str] = frozenset(),
) -> tuple[Resource, ...]:
    """All resources of a Kubernetes version; `alpha` names further API versions (`scheduling.k8s.io/v1alpha2`)."""
    asked = tuple(entry for entry in ON_REQUEST if f"{entry[0]}/{entry[1]}" in alpha)
    return tuple(_resources(SERVED + asked, shapes, strategies))


def _resources(
    table: tuple[tuple[str, str, tuple[BuiltinResource, ...]], ...],
    shapes: Shapes,
    strategies: Mapping[tuple[str, str], Strategy],
) -> Iterator[Resource]:
    for group, version, rows in table:
        for row in rows:
            try:
                schema = shapes.of(group, version, row.kind)
            except LookupError:
                continue
            yield _resource(group, version, row, schema, strategies.get((group, row.plural), GENERIC))


def _resource(group: str, version: str, row: BuiltinResource, schema: Schema, strategy: Strategy) -> Resource:
    return Resource(
        group=group,
        version=version,
        plural=row.plural,
        kind=row.kind,
        namespaced=row.namespaced,
        singular=row.kind.lower(),
        list_kind=f"{row.kind}List",
        short_names=row.short,
        categories=row.categories,
        verbs=row.verbs,
        subresources=row.subresources,
        stored_version=row.stored,
        schema=schema,
        strategy=strategy,
        home_group=row.home_group,
    )
