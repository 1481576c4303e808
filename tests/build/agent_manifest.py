"""What the manifests of the agent consist of, and the agent of the node `n0` as a user of the API."""

from __future__ import annotations

from shoal.client.kind import DAEMON_SETS, DEVICE_CLASSES, NAMESPACES, SERVICE_ACCOUNTS, Kind
from shoal.controllers.gatekeeping.policies import CHECKING, CHECKING_BINDINGS
from shoal.embedded.apiserver.calls import Actor

_RBAC = "rbac.authorization.k8s.io"
KINDS = {
    "ClusterRole": Kind(_RBAC, "v1", "clusterroles", "ClusterRole", is_namespaced=False),
    "ClusterRoleBinding": Kind(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", is_namespaced=False),
    "ValidatingAdmissionPolicy": CHECKING,
    "ValidatingAdmissionPolicyBinding": CHECKING_BINDINGS,
    "DaemonSet": DAEMON_SETS,
    "Namespace": NAMESPACES,
    "DeviceClass": DEVICE_CLASSES,
    "ServiceAccount": SERVICE_ACCOUNTS,
}
AGENT = Actor(
    "system:serviceaccount:shoal-system:shoal-agent",
    ("system:serviceaccounts", "system:serviceaccounts:shoal-system", "system:authenticated"),
    extra=(("authentication.kubernetes.io/node-name", ("n0",)),),
)
