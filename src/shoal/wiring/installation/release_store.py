"""Reads and writes the record of a release, and finds the release of a cluster.

A record is a ConfigMap, which a user of any namespace may write. Taken are the records of releases that have
permissions (`bound_releases.py`), and those of a namespace that the user of the command names. So a release whose
installation or removal was interrupted is found by the name of its namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from shoal.client.kind import Kind
from shoal.client.refusals import ForbiddenError
from shoal.data.permissions import ELECTION_NAMESPACE
from shoal.install.inventory import ReleaseRecord, config_map_name, from_api, to_api
from shoal.install.manifest import Address
from shoal.install.release import INSTANCE, MANAGED_BY, NAME, NAMESPACE, Release
from shoal.units.errors import UserError, Where
from shoal.wiring.installation.bound_releases import RECORDS, bound_releases, subject_namespaces
from shoal.wiring.installation.cluster_writer import ClusterWriter

Obj = dict[str, Any]
_CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")
_MOST_NAMED = 3


class ListedRecord(NamedTuple):
    """A ConfigMap with the labels of a record, as it is in the cluster."""

    release: str
    namespace: str
    config_map: Obj


class ReleaseNotFoundError(UserError):
    """There is no record of the release."""


def record_address(name: str, namespace: str) -> Address:
    return Address("v1", "ConfigMap", namespace, config_map_name(name))


async def find_record(writer: ClusterWriter, name: str, namespace: str) -> ReleaseRecord | None:
    """Raises UserError for a record in another form."""
    found = await writer.find(record_address(name, namespace))
    return None if found is None else from_api(found)


async def save_record(writer: ClusterWriter, record: ReleaseRecord) -> None:
    await writer.apply(to_api(record))


async def installed_record(writer: ClusterWriter, name: str = "", namespace: str = "") -> ReleaseRecord:
    """The release of that name, or the only one. Raises UserError if it is not installed."""
    listed = await _records(writer)
    found = await _believed(writer, listed, namespace)
    chosen = [one for one in found if name in ("", one[0]) and namespace in ("", one[1])]
    if len(chosen) == 1:
        return from_api(chosen[0][2])
    if not chosen:
        inside = f" in the namespace {namespace}" if namespace else ""
        what = f"release {name or 'of Shoal'} not found{inside}"
        raise ReleaseNotFoundError(what, where=Where(path="RELEASE"), fix=_where_else(found, listed))
    names = ", ".join(f"{one} -n {inside}" for one, inside, _ in chosen)
    raise UserError("there are several releases", where=Where(path="RELEASE"), fix=f"name one of: {names}")


def _where_else(found: Sequence[ListedRecord], listed: Sequence[ListedRecord]) -> str:
    if found:
        return "found: " + ", ".join(f"{one} in the namespace {inside}" for one, inside, _ in found)
    if listed:
        # Any user of a namespace could have written them, so they are shown and not used.
        names = ", ".join(f"{one} -n {inside}" for one, inside, _ in listed[:_MOST_NAMED])
        return f"records without permissions are there; if a command was interrupted, name the release: {names}"
    return "install it with: shoal install"


async def release_to_remove(writer: ClusterWriter, name: str = "", namespace: str = "") -> Release:
    """Without a record, what the labels of a half-removed release say. Raises UserError.

    Labels alone never lead to a release of another namespace than the given one: its objects without a namespace would
    be removed.
    """
    try:
        return (await installed_record(writer, name, namespace)).release
    except ReleaseNotFoundError:
        if not name and await _believed(writer, await _records(writer), namespace):
            raise
        chosen = name or NAME
        left = [obj for _, obj in await writer.labelled(selector_of(chosen))]
        bound, others = _bound_namespaces(left), _namespaces(left)
        spaces = bound or others
        if not left or (namespace and spaces and namespace not in spaces):
            raise
        if not namespace and (len(bound) > 1 or (others and not bound)):
            names = ", ".join(f"-n {one}" for one in sorted(spaces))
            what = f"the namespace of release {chosen} is not certain"
            raise UserError(what, where=Where(path="--namespace"), fix=f"name it: {names}") from None
        return Release(chosen, namespace or next(iter(bound), NAMESPACE))


def selector_of(release: str) -> str:
    return f"{MANAGED_BY}=shoal,{INSTANCE}={release}"


def _bound_namespaces(objects: Iterable[Obj]) -> set[str]:
    """In which a release is, by objects that only administrators write: its namespace, and its bindings."""
    found: set[str] = set()
    for obj in objects:
        found |= {obj["metadata"]["name"]} if obj["kind"] == "Namespace" else subject_namespaces(obj)
    return found


def _namespaces(objects: Iterable[Obj]) -> set[str]:
    return {obj["metadata"].get("namespace", "") for obj in objects} - {"", ELECTION_NAMESPACE}


async def _records(writer: ClusterWriter) -> list[ListedRecord]:
    return [
        ListedRecord(meta["labels"].get(INSTANCE, ""), meta["namespace"], obj)
        for obj in await writer.all(_CONFIG_MAPS, RECORDS)
        if (meta := obj["metadata"])
    ]


async def _believed(writer: ClusterWriter, listed: Iterable[ListedRecord], namespace: str) -> list[ListedRecord]:
    """`namespace`: that the user names; empty without one."""
    try:
        bound = await bound_releases(writer)
    except ForbiddenError:
        bound = frozenset()
    return [one for one in listed if one[:2] in bound or (namespace and one.namespace == namespace)]
