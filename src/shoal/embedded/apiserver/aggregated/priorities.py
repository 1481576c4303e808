"""Orders groups and versions in discovery by the priorities that Kubernetes gives its own APIServices."""

from __future__ import annotations

GROUPS: dict[str, int] = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "apiextensions.k8s.io": 16700,
    "admissionregistration.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "internal.apiserver.k8s.io": 16000,
}
VERSIONS: dict[tuple[str, str], int] = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1"): 21,
}
STABLE, UNSTABLE = 15, 9
CUSTOM_GROUP, CUSTOM_VERSION = 1000, 100
"""Those of all custom resources."""


def version_priority(group: str, version: str) -> int:
    return VERSIONS.get((group, version)) or (UNSTABLE if "alpha" in version or "beta" in version else STABLE)
