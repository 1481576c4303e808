"""Roles of the programs a cluster is made of, and the users they are bound to."""

from __future__ import annotations

from shoal.data import permissions
from shoal.data.role_lines import EVENTS, READ

_REVIEWS = ("create tokenreviews @authentication.k8s.io", "create subjectaccessreviews @authorization.k8s.io")
_CERTIFICATES = "certificates.k8s.io"
_SIGNERS = {
    "kube-apiserver-client-approver": "kubernetes.io/kube-apiserver-client",
    "kube-apiserver-client-kubelet-approver": "kubernetes.io/kube-apiserver-client-kubelet",
    "kubelet-serving-approver": "kubernetes.io/kubelet-serving",
    "legacy-unknown-approver": "kubernetes.io/legacy-unknown",
}


def _leader(name: str) -> tuple[str, ...]:
    group = "@coordination.k8s.io"
    return (
        f"create leases {group}",
        f"get,update leases {group} ={name}",
        f"create,get,list,update,watch leasecandidates {group}",
    )


ROLES: dict[str, tuple[str, ...]] = {
    "system:auth-delegator": _REVIEWS,
    # Simulated kubelets are one client for all nodes; they also do what a cloud does to an interrupted machine. Unlike
    # real ones they run no programs, so they need no Secrets, tokens or volumes.
    "system:shoal:fleet": (
        f"create,delete,{READ},patch nodes",
        "patch nodes/status",
        f"delete,{READ} pods",
        "patch pods/status",
        "create,get,patch leases @coordination.k8s.io",
        f"{READ} configmaps",
        "create,delete,list,update resourceslices @resource.k8s.io",
        f"{READ} resourceclaims @resource.k8s.io",
        f"{READ} clusterpolicies @nvidia.com",
        f"{READ} misplacedclusterpolicies @config.openshift.io",
        EVENTS,
    ),
    # The parts that run here by default, so that the user of `shoal run` need not be an administrator.
    "system:shoal": (
        *permissions.lines_of((*permissions.BY_DEFAULT, permissions.NODE_SCALING)),
        *(line for lines in permissions.WITH_CLOUD.values() for line in lines),
    ),
    "system:heapster": (f"{READ} events,namespaces,nodes,pods", f"{READ} deployments @extensions"),
    "system:kube-aggregator": (f"{READ} endpoints,services",),
    "system:kube-dns": ("list,watch endpoints,services",),
    "system:kubelet-api-admin": (
        "get,list,watch nodes",
        "proxy nodes",
        "* nodes/configz,nodes/healthz,nodes/log,nodes/metrics,nodes/pods,nodes/proxy,nodes/stats",
    ),
    "system:node-bootstrapper": (f"create,{READ} certificatesigningrequests @{_CERTIFICATES}",),
    "system:node-problem-detector": ("get nodes", "patch nodes/status", EVENTS),
    "system:node-proxier": (
        "list,watch endpoints,services",
        f"{READ} nodes",
        EVENTS,
        "list,watch endpointslices @discovery.k8s.io",
        "list,watch servicecidrs @networking.k8s.io",
    ),
    "system:persistent-volume-provisioner": (
        f"create,delete,{READ} persistentvolumes",
        f"{READ},update persistentvolumeclaims",
        f"{READ} storageclasses @storage.k8s.io",
        "watch events",
        EVENTS,
    ),
    "system:volume-scheduler": (
        f"{READ},patch,update persistentvolumes",
        f"{READ} storageclasses @storage.k8s.io",
        f"{READ},patch,update persistentvolumeclaims",
    ),
    "system:service-account-issuer-discovery": ("get /.well-known/openid-configuration,/openid/v1/jwks",),
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        f"create certificatesigningrequests/nodeclient @{_CERTIFICATES}",
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        f"create certificatesigningrequests/selfnodeclient @{_CERTIFICATES}",
    ),
    **{
        f"system:certificates.k8s.io:{role}": (f"approve signers @{_CERTIFICATES} ={signer}",)
        for role, signer in _SIGNERS.items()
    },
    "system:kube-controller-manager": (
        EVENTS,
        *_leader("kube-controller-manager"),
        "create secrets,serviceaccounts",
        "delete secrets",
        "get configmaps,namespaces,secrets,serviceaccounts",
        "update secrets,serviceaccounts",
        *_REVIEWS,
        "list,watch * @*",
        "create serviceaccounts/token",
    ),
    "system:kube-scheduler": (
        EVENTS,
        *_leader("kube-scheduler"),
        f"{READ} nodes",
        f"delete,{READ} pods",
        "create bindings,pods/binding",
        "patch,update pods/status",
        f"{READ} replicationcontrollers,services",
        f"{READ} replicasets @apps,extensions",
        f"{READ} statefulsets @apps",
        f"{READ} poddisruptionbudgets @policy",
        f"{READ} persistentvolumeclaims,persistentvolumes",
        *_REVIEWS,
        f"{READ} csinodes @storage.k8s.io",
        f"{READ} namespaces",
        f"{READ} csidrivers @storage.k8s.io",
        f"{READ} csistoragecapacities @storage.k8s.io",
        f"{READ} volumeattachments @storage.k8s.io",
        f"{READ} deviceclasses @resource.k8s.io",
        f"{READ},patch,update resourceclaims @resource.k8s.io",
        "patch,update resourceclaims/status @resource.k8s.io",
        f"{READ} resourceslices @resource.k8s.io",
        f"{READ} podgroups,workloads @scheduling.k8s.io",
    ),
    "system:node": (
        "create tokenreviews @authentication.k8s.io",
        "create localsubjectaccessreviews,subjectaccessreviews @authorization.k8s.io",
        f"{READ} services",
        f"create,{READ} nodes",
        "patch,update nodes/status",
        "patch,update nodes",
        EVENTS,
        f"{READ} pods",
        "create,delete pods",
        "patch,update pods/status",
        "create pods/eviction",
        f"{READ} configmaps,secrets",
        "get persistentvolumeclaims,persistentvolumes",
        "get endpoints",
        f"create,{READ} certificatesigningrequests @{_CERTIFICATES}",
        "create,delete,get,patch,update leases @coordination.k8s.io",
        "get volumeattachments @storage.k8s.io",
        "create serviceaccounts/token",
        "get,patch,update persistentvolumeclaims/status",
        f"{READ} csidrivers @storage.k8s.io",
        "create,delete,get,patch,update csinodes @storage.k8s.io",
        f"{READ} runtimeclasses @node.k8s.io",
        "get resourceclaims @resource.k8s.io",
        "deletecollection resourceslices @resource.k8s.io",
        "get serviceaccounts",
    ),
}

BINDINGS: dict[str, tuple[str, ...]] = {
    "system:shoal": ("User system:shoal",),
    "system:shoal:fleet": ("User system:shoal:fleet",),
    "system:node-proxier": ("User system:kube-proxy",),
    "system:kube-controller-manager": ("User system:kube-controller-manager",),
    "system:kube-dns": ("ServiceAccount kube-dns/kube-system",),
    "system:kube-scheduler": ("User system:kube-scheduler",),
    "system:volume-scheduler": ("User system:kube-scheduler",),
    "system:service-account-issuer-discovery": ("Group system:serviceaccounts",),
}

NAMESPACE_ROLES: dict[tuple[str, str], tuple[str, ...]] = {
    ("kube-public", "system:controller:bootstrap-signer"): (
        f"{READ} configmaps",
        "update configmaps =cluster-info",
        EVENTS,
    ),
    ("kube-system", "extension-apiserver-authentication-reader"): (
        f"{READ} configmaps =extension-apiserver-authentication",
    ),
    ("kube-system", "system:controller:bootstrap-signer"): (f"{READ} secrets",),
    # A cluster of this server has no installer, which would create the ConfigMap of budgets.
    (permissions.ELECTION_NAMESPACE, "system:shoal"): (
        *permissions.ELECTION,
        *permissions.BESIDE_LEASE[permissions.HISTORY],
        "create configmaps",
    ),
    ("kube-system", "system:controller:cloud-provider"): (f"create,{READ},update configmaps",),
    ("kube-system", "system:controller:token-cleaner"): (f"delete,{READ} secrets", EVENTS),
    ("kube-system", "system::leader-locking-kube-controller-manager"): (
        "watch configmaps",
        "get,update configmaps =kube-controller-manager",
    ),
    ("kube-system", "system::leader-locking-kube-scheduler"): (
        "watch configmaps",
        "get,update configmaps =kube-scheduler",
    ),
}

_SIGNER = ("ServiceAccount bootstrap-signer/kube-system",)
_MANAGER, _SCHEDULER = "User system:kube-controller-manager", "User system:kube-scheduler"
NAMESPACE_BINDINGS: dict[tuple[str, str], tuple[str, ...]] = {
    ("kube-public", "system:controller:bootstrap-signer"): _SIGNER,
    ("kube-system", "extension-apiserver-authentication-reader"): (_MANAGER, _SCHEDULER),
    ("kube-system", "system:controller:bootstrap-signer"): _SIGNER,
    (permissions.ELECTION_NAMESPACE, "system:shoal"): ("User system:shoal",),
    ("kube-system", "system:controller:cloud-provider"): ("ServiceAccount cloud-provider/kube-system",),
    ("kube-system", "system:controller:token-cleaner"): ("ServiceAccount token-cleaner/kube-system",),
    ("kube-system", "system::leader-locking-kube-controller-manager"): (
        _MANAGER,
        "ServiceAccount kube-controller-manager/kube-system",
    ),
    ("kube-system", "system::leader-locking-kube-scheduler"): (
        _SCHEDULER,
        "ServiceAccount kube-scheduler/kube-system",
    ),
}
