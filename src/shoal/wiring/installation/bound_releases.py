"""Tells which releases have permissions in the cluster, by their ClusterRoleBindings.

The record of a release is a ConfigMap, which a user with rights in one namespace may write. A ClusterRoleBinding is
written by administrators only, so a record counts if accounts of its namespace have the bindings of its release.
"""

from __future__ import annotations

from typing import Any

from shoal.client.kind import Kind
from shoal.data.permissions import ELECTION_NAMESPACE
from shoal.install.inventory import COMPONENT
from shoal.install.release import INSTANCE, MANAGED_BY, PART
from shoal.wiring.installation.cluster_writer import ClusterWriter

Obj = dict[str, Any]
RECORDS = f"{MANAGED_BY}=shoal,{PART}={COMPONENT}"
_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", is_namespaced=False)


async def bound_releases(writer: ClusterWriter) -> frozenset[tuple[str, str]]:
    """Name and namespace of each. Raises ForbiddenError if the user may not read bindings."""
    return frozenset(
        (binding["metadata"]["labels"][INSTANCE], inside)
        for binding in await writer.all(_BINDINGS, f"{MANAGED_BY}=shoal,{INSTANCE}")
        for inside in subject_namespaces(binding)
    )


def subject_namespaces(obj: Obj) -> set[str]:
    """Of the accounts that a ClusterRoleBinding has; empty for other objects."""
    if obj["kind"] != "ClusterRoleBinding":
        return set()
    subjects = obj.get("subjects") or ()
    return {one["namespace"] for one in subjects if one.get("kind") == "ServiceAccount"} - {ELECTION_NAMESPACE}
