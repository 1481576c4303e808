"""Reads the facts that the preflight checks. What the user may not read is named and not checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from shoal.api.decode import convert
from shoal.client.kind import (
    DAEMON_SETS,
    DEFINITIONS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    NAMESPACES,
    NODES,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
    Kind,
)
from shoal.client.refusals import ForbiddenError, RefusedError
from shoal.client.volumes.values import StorageClass
from shoal.install.adoption.record import ADOPTION_PREFIX
from shoal.install.adoption.record import COMPONENT as ADOPTION
from shoal.install.manifest import Address
from shoal.install.objects.deployments import HISTORY
from shoal.install.preflight.facts import (
    ClaimFacts,
    ClusterFacts,
    DefinitionFacts,
    FoundNode,
    FoundWorkload,
    HookFacts,
    PolicyFacts,
    ReleaseFacts,
    Right,
    StorageClassFacts,
)
from shoal.install.preflight.rights import EVERYTHING
from shoal.install.release import INSTANCE, MANAGED_BY, PART
from shoal.units.errors import Where
from shoal.units.numbers import whole_of
from shoal.wiring.installation.bound_releases import RECORDS, bound_releases
from shoal.wiring.installation.cluster_writer import ClusterWriter

Obj = dict[str, Any]
_ADMISSION = "admissionregistration.k8s.io"
POLICIES = Kind("nvidia.com", "v1", "clusterpolicies", "ClusterPolicy", is_namespaced=False)
_ACCESS = Kind("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", is_namespaced=False)
_SELF = Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", is_namespaced=False)
_CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")
_ADOPTIONS = f"{MANAGED_BY}=shoal,{PART}={ADOPTION}"
_GPU = "nvidia.com/gpu"


class FactsReader:
    def __init__(self, writer: ClusterWriter) -> None:
        self._writer = writer
        self._unread: list[str] = []

    async def read(self, namespace: str, rights: Sequence[Right], version: str) -> ClusterFacts:
        self._unread = []
        labels, is_terminating = await self._namespace(namespace)
        facts = ClusterFacts(
            version=version,
            user=await self._user(),
            denied=await self.denied(rights),
            nodes=tuple(_node(obj) for obj in await self._listed(NODES)),
            namespace_labels=labels,
            is_namespace_terminating=is_terminating,
            definitions=tuple(_definition(obj) for obj in await self._listed(DEFINITIONS)),
            hooks=tuple(await self._hooks()),
            workloads=(
                *(_workload("Deployment", obj) for obj in await self._listed(DEPLOYMENTS)),
                *(_workload("DaemonSet", obj) for obj in await self._listed(DAEMON_SETS)),
            ),
            policies=tuple(
                PolicyFacts(obj["metadata"]["name"], obj["metadata"].get("labels") or {})
                for obj in await self._listed(POLICIES)
            ),
            releases=await self._releases(namespace),
            adopted=tuple(
                [name for obj in await self._listed(_CONFIG_MAPS, _ADOPTIONS) if (name := _adopted(obj, namespace))]
            ),
            storage_classes=await self._storage_classes(),
            history_claim=await self._history_claim(namespace),
            priority_classes=frozenset(obj["metadata"]["name"] for obj in await self._listed(PRIORITY_CLASSES)),
        )
        return msgspec.structs.replace(facts, unread=tuple(dict.fromkeys(self._unread)))

    async def _listed(self, kind: Kind, selector: str = "") -> list[Obj]:
        try:
            return await self._writer.all(kind, selector)
        except ForbiddenError:
            self._unread.append(kind.plural)
            return []

    async def _storage_classes(self) -> tuple[StorageClassFacts, ...] | None:
        try:
            listed = await self._writer.all(STORAGE_CLASSES)
        except ForbiddenError:
            return None
        found = [convert(one, StorageClass, Where(obj="StorageClass")) for one in listed]
        return tuple(StorageClassFacts(one.metadata.name, one.is_default) for one in found)

    async def _history_claim(self, namespace: str) -> ClaimFacts | None:
        """The rights of the installation include this one where it is needed."""
        try:
            obj = await self._writer.find(Address("v1", "PersistentVolumeClaim", namespace, HISTORY))
        except ForbiddenError:
            return None
        spec = {} if obj is None else obj["spec"]
        size = (spec.get("resources") or {}).get("requests", {}).get("storage", "0")
        modes = tuple(spec.get("accessModes") or ())
        return None if obj is None else ClaimFacts(spec.get("storageClassName", ""), size, modes)

    async def _releases(self, namespace: str) -> tuple[ReleaseFacts, ...]:
        """Those with permissions, and those in the namespace of the installation: a record of another namespace may
        have been written by any user of it."""
        try:
            bound = await bound_releases(self._writer)
        except ForbiddenError:
            self._unread.append("clusterrolebindings")
            bound = frozenset()
        found = [_release(obj) for obj in await self._listed(_CONFIG_MAPS, RECORDS)]
        return tuple(one for one in found if one.namespace == namespace or (one.name, one.namespace) in bound)

    async def _namespace(self, name: str) -> tuple[dict[str, str] | None, bool]:
        """Its labels, and whether it is being deleted."""
        for obj in await self._listed(NAMESPACES):
            if obj["metadata"]["name"] == name:
                return dict(obj["metadata"].get("labels") or {}), "deletionTimestamp" in obj["metadata"]
        return None, False

    async def _user(self) -> str:
        try:
            found = await self._writer.patiently(lambda: self._writer.api.post(_SELF, "", "", "", {}))
        except RefusedError:
            return ""
        return str(((found.get("status") or {}).get("userInfo") or {}).get("username", ""))

    async def denied(self, rights: Sequence[Right]) -> tuple[Right, ...]:
        if await self._may(EVERYTHING):
            return ()
        return tuple([right for right in rights if not await self._may(right)])

    async def _may(self, right: Right) -> bool:
        asked = {
            "group": right.group,
            "resource": right.resource,
            "verb": right.verb,
            **({"namespace": right.namespace} if right.namespace else {}),
        }
        found = await self._writer.patiently(
            lambda: self._writer.api.post(_ACCESS, "", "", "", {"spec": {"resourceAttributes": asked}})
        )
        return bool((found.get("status") or {}).get("allowed"))

    async def _hooks(self) -> Iterable[HookFacts]:
        found: list[HookFacts] = []
        for name in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            kind = Kind(_ADMISSION, "v1", f"{name.lower()}s", name, is_namespaced=False)
            for obj in await self._listed(kind):
                strict = [one for one in obj.get("webhooks") or () if one.get("failurePolicy", "Fail") == "Fail"]
                found += [await self._hook(obj, one) for one in strict if not _is_narrow(one)]
        return found

    async def _hook(self, obj: Obj, hook: Obj) -> HookFacts:
        service = (hook.get("clientConfig") or {}).get("service") or {}
        resources = frozenset(name for rule in hook.get("rules") or () for name in rule.get("resources") or ())
        answers = not service or await self._has_endpoints(service.get("namespace", ""), service.get("name", ""))
        return HookFacts(
            obj["metadata"]["name"],
            hook["name"],
            obj["kind"],
            resources,
            f"{service.get('namespace')}/{service.get('name')}" if service else "",
            answers,
        )

    async def _has_endpoints(self, namespace: str, service: str) -> bool:
        try:
            slices = await self._writer.all(ENDPOINT_SLICES, f"kubernetes.io/service-name={service}", namespace)
        except ForbiddenError:
            self._unread.append(ENDPOINT_SLICES.plural)
            return True
        return any(
            (one.get("conditions") or {}).get("ready", True) for obj in slices for one in obj.get("endpoints") or ()
        )


def _adopted(config_map: Obj, namespace: str) -> str:
    """The project of a record of an adoption; empty for a ConfigMap that is none of this release."""
    meta = config_map["metadata"]
    name = str(meta["name"]).removeprefix(ADOPTION_PREFIX)
    return name if meta["namespace"] == namespace and name != meta["name"] else ""


def _is_narrow(hook: Obj) -> bool:
    """Whether it is asked about objects or namespaces with certain labels only, which those of Shoal do not have."""
    for selector in (hook.get("objectSelector") or {}, hook.get("namespaceSelector") or {}):
        requires = [one for one in selector.get("matchExpressions") or () if one.get("operator") in ("In", "Exists")]
        if selector.get("matchLabels") or requires:
            return True
    return False


def _node(obj: Obj) -> FoundNode:
    status = obj.get("status") or {}
    info = status.get("nodeInfo") or {}
    amount = whole_of(str((status.get("allocatable") or {}).get(_GPU, "0")))
    return FoundNode(
        obj["metadata"]["name"],
        info.get("containerRuntimeVersion", ""),
        info.get("osImage", ""),
        obj["metadata"].get("labels") or {},
        amount or 0,
    )


def _definition(obj: Obj) -> DefinitionFacts:
    served = tuple(one["name"] for one in obj["spec"]["versions"] if one.get("served"))
    stored = tuple((obj.get("status") or {}).get("storedVersions") or ())
    meta = obj["metadata"]
    return DefinitionFacts(meta["name"], meta.get("labels") or {}, served, stored, "deletionTimestamp" in meta)


def _workload(kind: Literal["Deployment", "DaemonSet"], obj: Obj) -> FoundWorkload:
    meta, status = obj["metadata"], obj.get("status") or {}
    labels = meta.get("labels") or {}
    return FoundWorkload(
        kind,
        meta["namespace"],
        meta["name"],
        labels.get("app") or labels.get("app.kubernetes.io/name", ""),
        labels.get(MANAGED_BY, ""),
        labels.get(INSTANCE, ""),
        status.get("readyReplicas", 0) if kind == "Deployment" else status.get("numberReady", 0),
        next((one.get("kind", "") for one in meta.get("ownerReferences") or () if one.get("controller")), ""),
    )


def _release(obj: Obj) -> ReleaseFacts:
    meta, data = obj["metadata"], obj.get("data") or {}
    name = (meta.get("labels") or {}).get(INSTANCE, "")
    return ReleaseFacts(name, meta["namespace"], data.get("state", ""), data.get("version", ""))
