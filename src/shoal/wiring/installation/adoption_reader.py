"""Reads what the plan of an adoption is made from. It sends no write request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.run_configuration import ProjectNamespaces
from shoal.client.kind import API_SERVICES, DEFINITIONS, DEPLOYMENTS, LEASES, PODS, SERVICES, Kind
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.install.adoption.controllers import configuration_name, controllers_of
from shoal.install.adoption.facts import AdoptionFacts
from shoal.install.adoption.projects import KAI, AdoptedKind, AdoptedProject
from shoal.install.manifest import Address
from shoal.install.preflight.facts import Right
from shoal.install.values.reading import ChartValues
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.facts_reader import FactsReader

Obj = dict[str, Any]
_ADMISSION = "admissionregistration.k8s.io"
HOOK_KINDS = {
    name: Kind(_ADMISSION, "v1", f"{name.lower()}s", name, is_namespaced=False)
    for name in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
}
_RESERVED = "kai-resource-reservation"
"""The namespace of KAI's reservation pods."""
_OLDER = ("v1beta1", "v1alpha1")


def project_namespace(project: AdoptedProject, values: ChartValues) -> str:
    """Where the configuration of the release expects the project."""
    named = values.get("config").get("namespaces")
    found = named.get(project.name) if isinstance(named, dict) else None
    return str(found or getattr(ProjectNamespaces(), project.name))


def adoption_rights(namespace: str, release_namespace: str) -> list[Right]:
    cluster_wide = (
        ("mutatingwebhookconfigurations", _ADMISSION, ("get", "list", "patch")),
        ("validatingwebhookconfigurations", _ADMISSION, ("get", "list", "patch")),
        ("customresourcedefinitions", "apiextensions.k8s.io", ("get", "list", "patch")),
        ("apiservices", "apiregistration.k8s.io", ("create", "delete", "get", "list")),
    )
    inside = (
        ("deployments", "apps", ("get", "list", "patch"), namespace),
        ("pods", "", ("list",), namespace),
        ("services", "", ("list",), namespace),
        ("leases", "coordination.k8s.io", ("create", "delete", "get", "patch"), namespace),
        ("configmaps", "", ("create", "delete", "get", "patch"), release_namespace),
    )
    return [
        *(Right(plural, group, verb) for plural, group, verbs in cluster_wide for verb in verbs),
        *(Right(plural, group, verb, space) for plural, group, verbs, space in inside for verb in verbs),
    ]


class AdoptionReader:
    def __init__(self, writer: ClusterWriter) -> None:
        self._writer = writer

    async def read(self, project: AdoptedProject, namespace: str, release_namespace: str) -> AdoptionFacts:
        rights = adoption_rights(namespace, release_namespace)
        pods = await self._all(PODS)
        facts = AdoptionFacts(
            deployments=tuple(await self._all(DEPLOYMENTS)),
            hooks=tuple([one for kind in HOOK_KINDS.values() for one in await self._all(kind)]),
            definitions=tuple(await self._all(DEFINITIONS)),
            api_services=tuple(await self._all(API_SERVICES)),
            objects={kind: tuple(await self._objects(kind)) for kind in project.kinds},
            services=tuple(await self._all(SERVICES, namespace)),
            pods=sum(_is_placed_by(one, project.schedulers) for one in pods),
            reservation_pods=sum(project == KAI and one["metadata"]["namespace"] == _RESERVED for one in pods),
            leases=tuple(await self._leases(project, namespace)),
            now=self._writer.clock.now(),
            denied=await FactsReader(self._writer).denied(rights),
        )
        config_map, settings = await self._settings(project, namespace, facts)
        return msgspec.structs.replace(facts, config_map=config_map, settings=settings)

    async def _all(self, kind: Kind, namespace: str = "") -> list[Obj]:
        try:
            return await self._writer.all(kind, "", namespace)
        except ForbiddenError:
            return []

    async def _objects(self, kind: AdoptedKind) -> list[Obj]:
        """In the version that the server has."""
        for version in dict.fromkeys((kind.version, *_OLDER)):
            asked = Kind(kind.group, version, kind.plural, kind.name, is_namespaced=kind.is_namespaced)
            try:
                listed = await self._writer.patiently(lambda asked=asked: self._writer.api.list(asked))  # type: ignore[misc]
            except NotFoundError:
                continue
            except ForbiddenError:
                return []
            return [item.obj() for item in listed.items]
        return []

    async def _leases(self, project: AdoptedProject, namespace: str) -> list[Obj]:
        found = []
        for name in project.leases:
            try:
                lease = await self._writer.patiently(lambda name=name: self._writer.api.get(LEASES, namespace, name))  # type: ignore[misc]
            except (NotFoundError, ForbiddenError):
                continue
            found.append(lease.obj())
        return found

    async def _settings(
        self, project: AdoptedProject, namespace: str, facts: AdoptionFacts
    ) -> tuple[str, dict[str, str]]:
        """The name of the ConfigMap and its data: the one of the usual name, else the one that a controller mounts."""
        mounted = configuration_name(project, controllers_of(project, namespace, facts))
        for name in dict.fromkeys((project.config_map, mounted)):
            data = await self._data(namespace, name) if name else None
            if data is not None:
                return name, data
        return "", {}

    async def _data(self, namespace: str, config_map: str) -> dict[str, str] | None:
        try:
            found = await self._writer.find(Address("v1", "ConfigMap", namespace, config_map))
        except ForbiddenError:
            return None
        return None if found is None else dict(found.get("data") or {})


def _is_placed_by(pod: Obj, schedulers: Sequence[str]) -> bool:
    spec = pod.get("spec") or {}
    is_active = (pod.get("status") or {}).get("phase") not in TERMINAL_PHASES
    return bool(spec.get("nodeName")) and is_active and spec.get("schedulerName") in schedulers
