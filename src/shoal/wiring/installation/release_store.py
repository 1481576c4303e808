"""Reads and writes the record of a release, and finds the release of a cluster.

A record is a ConfigMap, which a user of any namespace may write. Where ClusterRoleBindings of a release exist, only a
record in the namespace of their subjects is taken: such a user cannot write them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.client.kind import Kind
from shoal.client.refusals import ForbiddenError
from shoal.data.permissions import ELECTION_NAMESPACE
from shoal.install.inventory import ReleaseRecord, config_map_name, from_api, to_api
from shoal.install.manifest import Address
from shoal.install.release import INSTANCE, MANAGED_BY, NAME, NAMESPACE, Release
from shoal.units.errors import UserError, Where
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.facts_reader import RELEASES

Obj = dict[str, Any]
_CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")
_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", is_namespaced=False)


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
    chosen = [one for one in listed if name in ("", one[0]) and namespace in ("", one[1])]
    if len(chosen) == 1:
        return from_api(chosen[0][2])
    if not chosen:
        others = ", ".join(f"{one} in the namespace {inside}" for one, inside, _ in listed)
        inside = f" in the namespace {namespace}" if namespace else ""
        what = f"release {name or 'of Shoal'} not found{inside}"
        fix = f"found: {others}" if others else "install it with: shoal install"
        raise ReleaseNotFoundError(what, where=Where(path="RELEASE"), fix=fix)
    names = ", ".join(f"{one} -n {inside}" for one, inside, _ in chosen)
    raise UserError("there are several releases", where=Where(path="RELEASE"), fix=f"name one of: {names}")


async def release_to_remove(writer: ClusterWriter, name: str = "", namespace: str = "") -> Release:
    """Without a record, what the labels of a half-removed release say. Raises UserError.

    Labels alone never lead to a release of another namespace than the given one: its objects without a namespace would
    be removed.
    """
    try:
        return (await installed_record(writer, name, namespace)).release
    except ReleaseNotFoundError:
        if not name and await _records(writer):
            raise
        chosen = name or NAME
        left = await writer.labelled(selector_of(chosen))
        spaces = sorted(namespaces_of(obj for _, obj in left))
        if not left or (namespace and spaces not in ([], [namespace])):
            raise
        if len(spaces) > 1:
            names = ", ".join(f"-n {one}" for one in spaces)
            what = f"release {chosen} has objects in several namespaces"
            raise UserError(what, where=Where(path="--namespace"), fix=f"name one of: {names}") from None
        return Release(chosen, namespace or next(iter(spaces), NAMESPACE))


def selector_of(release: str) -> str:
    return f"{MANAGED_BY}=shoal,{INSTANCE}={release}"


def namespaces_of(objects: Iterable[Obj]) -> set[str]:
    """In which a release is, by its namespaced objects, its namespace and the subjects of its bindings."""
    found: set[str] = set()
    for obj in objects:
        meta = obj["metadata"]
        found.add(meta["name"] if obj["kind"] == "Namespace" else meta.get("namespace", ""))
        found |= subject_namespaces(obj)
    return found - {"", ELECTION_NAMESPACE}


def subject_namespaces(obj: Obj) -> set[str]:
    """Of the accounts that a ClusterRoleBinding has; empty for other objects."""
    if obj["kind"] != "ClusterRoleBinding":
        return set()
    return {one["namespace"] for one in obj.get("subjects") or () if one.get("kind") == "ServiceAccount"}


async def _records(writer: ClusterWriter) -> list[tuple[str, str, Obj]]:
    """Release, namespace and ConfigMap of each record."""
    found = [
        (meta["labels"].get(INSTANCE, ""), meta["namespace"], obj)
        for obj in await writer.all(_CONFIG_MAPS, RELEASES)
        if (meta := obj["metadata"])
    ]
    try:
        bindings = await writer.all(_BINDINGS, f"{MANAGED_BY}=shoal,{INSTANCE}")
    except ForbiddenError:
        return found
    bound = {
        (binding["metadata"]["labels"][INSTANCE], inside)
        for binding in bindings
        for inside in subject_namespaces(binding)
    }
    return [one for one in found if one[:2] in bound] if bound else found
