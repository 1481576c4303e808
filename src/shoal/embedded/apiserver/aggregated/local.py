"""The APIServices of what this server serves itself: one for each group and version, always available.

They are listed with those of other servers so that one list says who serves what. Those of built-in groups are there
from the start; those of custom resources come and go with their definitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.embedded.apiserver.bootstrap.seed import Seed, seed
from shoal.embedded.apiserver.catalog import ResourceCatalog
from shoal.embedded.apiserver.resource import Home

Obj = dict[str, Any]
GROUP = "apiregistration.k8s.io"
HOME = Home(GROUP, "apiservices")
MANAGED = "kube-aggregator.kubernetes.io/automanaged"
_KIND = (f"{GROUP}/v1", "APIService", "apiservices")


def name_of(group: str, version: str) -> str:
    """`v1.apps`; the core group's is `v1.`."""
    return f"{version}.{group}"


def local_services(catalog: ResourceCatalog, now: str) -> Iterator[Seed]:
    """Those of every served group version but the group of the APIServices itself, which Kubernetes leaves out too."""
    custom = {one.group for one in catalog.all() if one.is_custom}
    builtin = {one.group for one in catalog.all() if not one.is_custom}
    for group in catalog.groups():
        if group == GROUP:
            continue
        for version in catalog.versions(group):
            yield _local(group, version, now, is_custom=group in custom - builtin)


def _local(group: str, version: str, now: str, *, is_custom: bool) -> Seed:
    spec: Obj = {"group": group} if group else {}
    spec["groupPriorityMinimum"] = CUSTOM_GROUP if is_custom else GROUPS.get(group, CUSTOM_GROUP)
    spec["version"] = version
    spec["versionPriority"] = CUSTOM_VERSION if is_custom else version_priority(group, version)
    return seed(
        _KIND,
        name_of(group, version),
        labels={MANAGED: "true" if is_custom else "onstart"},
        spec=spec,
        status={"conditions": [condition("True", "Local", "Local APIServices are always available", now)]},
    )


def condition(status: str, reason: str, message: str, now: str) -> Obj:
    return {
        "lastTransitionTime": now,
        "message": message,
        "reason": reason,
        "status": status,
        "type": "Available",
    }


def available(service: Obj) -> Obj | None:
    """The condition that says whether an APIService can be reached."""
    conditions = (service.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == "Available"), None)


def is_available(service: Obj) -> bool:
    found = available(service)
    return found is not None and found.get("status") == "True"


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
