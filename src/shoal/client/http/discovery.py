"""Reads which resources a server serves from its two aggregated discovery documents.

The first version is the one that its group prefers; a resource that it lacks is read from the next version. A group
whose aggregated server does not answer keeps its last state; without one, an error that contains all other groups is
raised: code that deletes objects of unserved kinds must not mistake an outage for absence.

Rejected: the older documents, one for each version of each group. Every server since Kubernetes 1.30 has the new ones.
"""

from __future__ import annotations

import msgspec
from msgspec import structs

from shoal.client.http.connection import Connection
from shoal.client.kind import Kind
from shoal.client.port import ServedKind, SilentGroupError
from shoal.client.refusals import BadRequestError, BusyError

_ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class _Name(msgspec.Struct):
    name: str = ""


class _KindName(msgspec.Struct):
    kind: str = ""


class _Resource(msgspec.Struct, rename="camel"):
    resource: str
    response_kind: _KindName | None = None
    scope: str = "Namespaced"
    verbs: frozenset[str] | None = frozenset()
    """Null for what is no resource by itself: API servers make it of the metrics of custom.metrics.k8s.io."""


class _Version(msgspec.Struct):
    version: str
    resources: list[_Resource] = []
    freshness: str = "Current"


class _ApiGroup(msgspec.Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)
    versions: list[_Version] = []


class _Document(msgspec.Struct):
    kind: str = ""
    items: list[_ApiGroup] = []


class DiscoveryClient:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[str, str], list[_Resource]] = {}

    async def served(self) -> tuple[ServedKind, ...]:
        found: list[ServedKind] = []
        silent: list[str] = []
        for path in ("/api", "/apis"):
            for group in await self._groups(path):
                found += self._of(group, silent)
        if silent:
            words = f"the server of {', '.join(silent)} does not answer, and what it serves is not known"
            raise SilentGroupError(words, tuple(found))
        return tuple(found)

    async def _groups(self, path: str) -> list[_ApiGroup]:
        body = await self._connection.ask("GET", path, accept=_ACCEPT)
        try:
            document = msgspec.json.decode(body, type=_Document)
        except msgspec.MsgspecError as error:
            raise BusyError(f"what {path} says cannot be understood: {error}", code=502) from None
        if document.kind != "APIGroupDiscoveryList":
            raise BadRequestError(f"{path} says {document.kind or 'nothing'}; Kubernetes 1.30 or later is needed")
        return document.items

    def _of(self, group: _ApiGroup, silent: list[str]) -> list[ServedKind]:
        """`silent`: collects the groups that do not answer."""
        name = group.metadata.name
        found: dict[str, ServedKind] = {}
        versions: dict[str, list[str]] = {}
        for version in group.versions:
            resources = self._resources(name, version)
            if resources is None:
                silent.append(f"{name}/{version.version}")
            for one in resources or ():
                word = one.response_kind.kind if one.response_kind else ""
                kind = Kind(name, version.version, one.resource, word, one.scope == "Namespaced")
                found.setdefault(one.resource, ServedKind(kind, one.verbs or frozenset(), ()))
                versions.setdefault(one.resource, []).append(version.version)
        return [structs.replace(one, versions=tuple(versions[name])) for name, one in found.items()]

    def _resources(self, group: str, version: _Version) -> list[_Resource] | None:
        """None: unknown."""
        address = (group, version.version)
        if version.freshness == "Current":
            self._known[address] = version.resources
            return version.resources
        return version.resources or self._known.get(address)
