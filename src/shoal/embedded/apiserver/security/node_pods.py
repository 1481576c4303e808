"""Tracks the pods of each node and the objects that they refer to, which the node may read.

The pods of a node are indexed as commits become visible, from the first time that a node asks; a cluster whose nodes
never authenticate pays nothing. What one pod refers to is read when it is first asked for and kept until the pod
changes, so that a request of a node costs a look at the pods of that node only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from shoal.embedded.apiserver.admission.service_account import MIRROR
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.resource import Home, Ref
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.record import Record
from shoal.embedded.apiserver.state.state import State

Obj = dict[str, Any]
SECRETS, CONFIG_MAPS, ACCOUNTS = "secrets", "configmaps", "serviceaccounts"
CLAIMS, RESOURCE_CLAIMS = "persistentvolumeclaims", "resourceclaims"
References = frozenset[tuple[str, str]]
"""Plural and name of objects in the namespace of the pod that refers to them."""

_PODS = Home("", "pods")
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_SECRET_REFS = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")
_NODE_SECRETS = ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef")
_MOST_KEPT = 20_000


class NodePods:
    def __init__(self, state: State) -> None:
        self._state = state
        self._reader: Reader = state.reader
        self._by_node: dict[str, dict[Ref, None]] | None = None
        self._references: dict[Ref, References] = {}

    def has(self, node: str, plural: str, namespace: str, name: str) -> bool:
        """Whether a pod of the node refers to the object, by itself or through its volumes."""
        wanted = (plural, name)
        refs = self._of(node)
        if any(ref.namespace == namespace and wanted in self._references_of(ref) for ref in refs):
            return True
        if plural == SECRETS:
            return any((namespace, name) in volume_secrets(volume) for volume in self._volumes(refs))
        return False

    def has_pod_in(self, node: str, namespace: str) -> bool:
        return any(ref.namespace == namespace for ref in self._of(node))

    def has_volume(self, node: str, name: str) -> bool:
        volume = self._reader.get("", "persistentvolumes", "", name)
        claim = ((volume or {}).get("spec") or {}).get("claimRef") or {}
        return bool(claim) and self.has(node, CLAIMS, claim.get("namespace") or "", claim.get("name") or "")

    def _volumes(self, refs: Sequence[Ref]) -> Iterator[Obj]:
        """The volumes behind the claims of pods."""
        claims = {
            (ref.namespace, name) for ref in refs for plural, name in self._references_of(ref) if plural == CLAIMS
        }
        for namespace, name in claims:
            claim = self._reader.get("", CLAIMS, namespace, name)
            volume_name = ((claim or {}).get("spec") or {}).get("volumeName")
            volume = self._reader.get("", "persistentvolumes", "", volume_name) if volume_name else None
            if volume is None:
                continue
            owner = (volume.get("spec") or {}).get("claimRef") or {}
            if (owner.get("namespace"), owner.get("name")) == (namespace, name):
                yield volume

    def _of(self, node: str) -> Sequence[Ref]:
        if self._by_node is None:
            self._by_node = {}
            for record in self._state.list(_PODS, None).records:
                self._add(record)
            self._state.on_commit(self._committed)
        return tuple(self._by_node.get(node, ()))

    def _references_of(self, ref: Ref) -> References:
        found = self._references.get(ref)
        if found is None:
            record = self._state.get(ref)
            if record is None:
                return frozenset()
            if len(self._references) >= _MOST_KEPT:
                self._references.clear()
            found = self._references[ref] = references(record.obj())
        return found

    def _committed(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.record.ref.home != _PODS:
                continue
            self._references.pop(event.record.ref, None)
            if event.before is not None:
                self._remove(event.before)
            if event.kind != "DELETED":
                self._add(event.record)

    def _add(self, record: Record) -> None:
        node = record.fields.get("spec.nodeName")
        if node and self._by_node is not None:
            self._by_node.setdefault(node, {})[record.ref] = None

    def _remove(self, record: Record) -> None:
        node = record.fields.get("spec.nodeName", "")
        pods = (self._by_node or {}).get(node)
        if pods is not None:
            pods.pop(record.ref, None)
            if not pods and self._by_node is not None:
                del self._by_node[node]


def references(pod: Obj) -> References:
    """Mirror pods give nothing: a node creates them itself."""
    if MIRROR in (pod["metadata"].get("annotations") or {}):
        return frozenset()
    return frozenset((plural, name) for plural, name in _named(pod) if name)


def _named(pod: Obj) -> Iterator[tuple[str, str]]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    yield ACCOUNTS, spec.get("serviceAccountName") or ""
    for one in spec.get("imagePullSecrets") or ():
        yield SECRETS, one.get("name") or ""
    for field in _CONTAINERS:
        for container in spec.get(field) or ():
            yield from _of_environment(container)
    for volume in spec.get("volumes") or ():
        yield from _of_volume(volume, pod["metadata"]["name"])
    made = {one.get("name"): one.get("resourceClaimName") for one in status.get("resourceClaimStatuses") or ()}
    for one in spec.get("resourceClaims") or ():
        yield RESOURCE_CLAIMS, one.get("resourceClaimName") or made.get(one.get("name")) or ""
    yield RESOURCE_CLAIMS, (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName") or ""


def _of_environment(container: Obj) -> Iterator[tuple[str, str]]:
    for one in container.get("envFrom") or ():
        yield SECRETS, (one.get("secretRef") or {}).get("name") or ""
        yield CONFIG_MAPS, (one.get("configMapRef") or {}).get("name") or ""
    for one in container.get("env") or ():
        source = one.get("valueFrom") or {}
        yield SECRETS, (source.get("secretKeyRef") or {}).get("name") or ""
        yield CONFIG_MAPS, (source.get("configMapKeyRef") or {}).get("name") or ""


def _of_volume(volume: Obj, pod_name: str) -> Iterator[tuple[str, str]]:
    yield SECRETS, (volume.get("secret") or {}).get("secretName") or ""
    yield SECRETS, (volume.get("azureFile") or {}).get("secretName") or ""
    yield SECRETS, ((volume.get("csi") or {}).get("nodePublishSecretRef") or {}).get("name") or ""
    for kind in _SECRET_REFS:
        yield SECRETS, ((volume.get(kind) or {}).get("secretRef") or {}).get("name") or ""
    yield CONFIG_MAPS, (volume.get("configMap") or {}).get("name") or ""
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield SECRETS, (source.get("secret") or {}).get("name") or ""
        yield CONFIG_MAPS, (source.get("configMap") or {}).get("name") or ""
    yield CLAIMS, (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""
    if "ephemeral" in volume:
        yield CLAIMS, f"{pod_name}-{volume['name']}"


def volume_secrets(volume: Obj) -> frozenset[tuple[str, str]]:
    """Namespace and name of the Secrets of a PersistentVolume that a kubelet reads to mount it."""
    spec = volume.get("spec") or {}
    claim_namespace = (spec.get("claimRef") or {}).get("namespace") or ""
    azure = spec.get("azureFile") or {}
    found = [(azure.get("secretNamespace") or claim_namespace, azure.get("secretName"))]
    reported = [(spec.get(kind) or {}).get("secretRef") or {} for kind in _SECRET_REFS]
    found += [(one.get("namespace") or claim_namespace, one.get("name")) for one in reported]
    reported = [(spec.get("csi") or {}).get(key) or {} for key in _NODE_SECRETS]
    found += [(one.get("namespace") or "", one.get("name")) for one in reported]
    return frozenset((namespace, name) for namespace, name in found if namespace and name)
