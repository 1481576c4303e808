"""The resources of the kinds that an installation applies: what permissions and requests name."""

from __future__ import annotations

from typing import NamedTuple

_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"


class InstalledKind(NamedTuple):
    api_version: str
    name: str
    plural: str
    is_namespaced: bool = True

    @property
    def group(self) -> str:
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]


KINDS: tuple[InstalledKind, ...] = (
    InstalledKind("v1", "Namespace", "namespaces", is_namespaced=False),
    InstalledKind("v1", "ServiceAccount", "serviceaccounts"),
    InstalledKind("v1", "ConfigMap", "configmaps"),
    InstalledKind("v1", "Service", "services"),
    InstalledKind("v1", "Pod", "pods"),
    InstalledKind("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    InstalledKind("apps/v1", "Deployment", "deployments"),
    InstalledKind(f"{_RBAC}/v1", "ClusterRole", "clusterroles", is_namespaced=False),
    InstalledKind(f"{_RBAC}/v1", "ClusterRoleBinding", "clusterrolebindings", is_namespaced=False),
    InstalledKind(f"{_RBAC}/v1", "Role", "roles"),
    InstalledKind(f"{_RBAC}/v1", "RoleBinding", "rolebindings"),
    InstalledKind(f"{_ADMISSION}/v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", is_namespaced=False),
    InstalledKind(
        f"{_ADMISSION}/v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        is_namespaced=False,
    ),
    InstalledKind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    InstalledKind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    InstalledKind("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors"),
    InstalledKind("cert-manager.io/v1", "Issuer", "issuers"),
    InstalledKind("cert-manager.io/v1", "Certificate", "certificates"),
    InstalledKind(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", is_namespaced=False
    ),
    InstalledKind("nvidia.com/v1", "ClusterPolicy", "clusterpolicies", is_namespaced=False),
    InstalledKind("nvidia.com/v1alpha1", "NVIDIADriver", "nvidiadrivers", is_namespaced=False),
)
_BY_NAME = {(kind.api_version, kind.name): kind for kind in KINDS}


def installed_kind(api_version: str, name: str) -> InstalledKind:
    """Raises KeyError for a kind that no installation has."""
    return _BY_NAME[api_version, name]
