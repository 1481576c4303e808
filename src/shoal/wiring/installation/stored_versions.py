"""Stores the objects of definitions anew in the version in which their definition stores them now.

A definition keeps each version in `status.storedVersions` in which objects may be stored, and must serve it as long as
it is there. So after an upgrade with a newer version each object is written once, unchanged: the server then stores it
in the new version. It may be killed at any write; the next installation or upgrade continues.

Rejected: leaving it to the storage version migrator of Kubernetes, which many clusters do not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shoal.client.kind import DEFINITIONS, Kind
from shoal.client.port import Patch
from shoal.client.refusals import NotFoundError, RefusedError
from shoal.install.manifest import Address
from shoal.units.errors import ConflictError, TemporaryError
from shoal.wiring.installation.cluster_writer import ClusterWriter

Obj = dict[str, Any]


async def store_in_new_versions(
    writer: ClusterWriter, definitions: Iterable[Address], report: Callable[[str], None]
) -> None:
    """A refusal is reported: the objects stay readable in the version in which they are stored."""
    for address in definitions:
        definition = await writer.find(address)
        if definition is None:
            continue
        wanted = stored_version(definition)
        former = [one for one in (definition.get("status") or {}).get("storedVersions") or () if one != wanted]
        if not former:
            continue
        try:
            number = await _store(writer, definition)
            await _forget(writer, definition, wanted)
        except (RefusedError, ConflictError, TemporaryError) as error:
            report(f"definitions: objects of {address.name} stay stored in the version {former[0]}: {error}")
            continue
        if number:
            counted = "1 object" if number == 1 else f"{number} objects"
            report(f"definitions: {counted} of {address.name} stored in the version {wanted}")


def stored_version(definition: Obj) -> str:
    return next(str(one["name"]) for one in definition["spec"]["versions"] if one["storage"])


def defined_kind(definition: Obj) -> Kind:
    """As it is stored."""
    spec, names = definition["spec"], definition["spec"]["names"]
    is_namespaced = spec["scope"] == "Namespaced"
    return Kind(spec["group"], stored_version(definition), names["plural"], names["kind"], is_namespaced=is_namespaced)


async def _store(writer: ClusterWriter, definition: Obj) -> int:
    kind = defined_kind(definition)
    objects = await writer.all(kind)
    for obj in objects:
        try:
            await writer.api.update(kind, obj)
        except (ConflictError, NotFoundError):
            # Another client has written it meanwhile, in the new version, or has deleted it.
            continue
    return len(objects)


async def _forget(writer: ClusterWriter, definition: Obj, wanted: str) -> None:
    meta = definition["metadata"]
    known = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    patch = Patch("merge", {"metadata": known, "status": {"storedVersions": [wanted]}})
    await writer.api.patch(DEFINITIONS, "", meta["name"], patch, "status")
