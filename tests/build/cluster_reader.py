"""A cluster's objects for admission tests, and writes on them: `world().namespace("ml")`, `creating(world, pod("x"))`.

Objects are plain JSON values as the API server stores them. A world keeps stamps as the real state does, so that what
plugins keep between calls is tested too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.embedded.apiserver.calls import Actor, AdmissionAttributes, Call
from shoal.embedded.apiserver.resource import Resource

Obj = dict[str, Any]

KINDS = {
    "Namespace": ("", "namespaces", False),
    "Node": ("", "nodes", False),
    "Pod": ("", "pods", True),
    "Service": ("", "services", True),
    "ServiceAccount": ("", "serviceaccounts", True),
    "ConfigMap": ("", "configmaps", True),
    "LimitRange": ("", "limitranges", True),
    "ResourceQuota": ("", "resourcequotas", True),
    "PersistentVolumeClaim": ("", "persistentvolumeclaims", True),
    "PersistentVolume": ("", "persistentvolumes", False),
    "StorageClass": ("storage.k8s.io", "storageclasses", False),
    "PriorityClass": ("scheduling.k8s.io", "priorityclasses", False),
    "RuntimeClass": ("node.k8s.io", "runtimeclasses", False),
    "Ingress": ("networking.k8s.io", "ingresses", True),
    "IngressClass": ("networking.k8s.io", "ingressclasses", False),
    "Deployment": ("apps", "deployments", True),
    "CronJob": ("batch", "cronjobs", True),
    "CertificateSigningRequest": ("certificates.k8s.io", "certificatesigningrequests", False),
    "ResourceClaimTemplate": ("resource.k8s.io", "resourceclaimtemplates", True),
    "ResourceClaim": ("resource.k8s.io", "resourceclaims", True),
}
RESOURCES = {
    kind: Resource(group, "v1", plural, kind, namespaced) for kind, (group, plural, namespaced) in KINDS.items()
}


class FakeReader:
    """Objects in memory, with a stamp for each resource."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str, str, str], Obj] = {}
        self._stamps: dict[tuple[str, str], int] = {}
        self.scans = 0
        """How often anybody asked for all objects of a resource."""

    def put(self, *objects: Obj) -> FakeReader:
        for obj in objects:
            group, plural, _ = KINDS[obj["kind"]]
            metadata = obj["metadata"]
            self._objects[(group, plural, metadata.get("namespace", ""), metadata["name"])] = obj
            self._stamps[(group, plural)] = self._stamps.get((group, plural), 0) + 1
        return self

    def drop(self, obj: Obj) -> None:
        group, plural, _ = KINDS[obj["kind"]]
        del self._objects[(group, plural, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])]
        self._stamps[(group, plural)] += 1

    def get(self, group: str, plural: str, namespace: str, name: str) -> Obj | None:
        return self._objects.get((group, plural, namespace, name))

    def all(self, group: str, plural: str, namespace: str | None = None) -> Iterable[Obj]:
        self.scans += 1
        return [
            obj
            for (of_group, of_plural, of_namespace, _), obj in self._objects.items()
            if (of_group, of_plural) == (group, plural) and namespace in (None, of_namespace)
        ]

    def stamp(self, group: str, plural: str) -> int:
        return self._stamps.get((group, plural), 0)


def named(kind: str, name: str, namespace: str = "", **fields: Any) -> Obj:
    group, _, namespaced = KINDS[kind]
    metadata: Obj = {"name": name}
    if namespaced:
        metadata["namespace"] = namespace or "ml"
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": metadata, **fields}


def world(*objects: Obj, labels: dict[str, str] | None = None) -> FakeReader:
    """The namespace `ml` with its default service account, and what else is given."""
    namespace = named("Namespace", "ml")
    namespace["metadata"]["labels"] = {"kubernetes.io/metadata.name": "ml", **(labels or {})}
    return FakeReader().put(namespace, named("ServiceAccount", "default"), *objects)


def container(name: str = "c", requests: Obj | None = None, limits: Obj | None = None, **fields: Any) -> Obj:
    made: Obj = {"name": name, "image": "registry.example/app:1", **fields}
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    return {**made, "resources": resources}


def pod(name: str = "x", *containers: Obj, **spec: Any) -> Obj:
    return named("Pod", name, spec={"containers": list(containers) or [container()], **spec})


def admission(operation: str, obj: Obj, old: Obj | None = None, subresource: str = "") -> AdmissionAttributes:
    """A write of an object by somebody ordinary."""
    resource = RESOURCES[obj["kind"]] if obj["kind"] in RESOURCES else RESOURCES["Pod"]
    metadata = obj["metadata"]
    verb: Any = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete"}[operation]
    call = Call(verb, resource, Actor("kim"), metadata.get("namespace", ""), metadata.get("name", ""), subresource)
    made: Any = operation
    return AdmissionAttributes(made, call, metadata.get("name", ""), None if operation == "DELETE" else obj, old)


def creating(obj: Obj, subresource: str = "") -> AdmissionAttributes:
    return admission("CREATE", obj, subresource=subresource)


def updating(old: Obj, new: Obj, subresource: str = "") -> AdmissionAttributes:
    return admission("UPDATE", new, old, subresource)


def deleting(obj: Obj) -> AdmissionAttributes:
    return admission("DELETE", obj, obj)
