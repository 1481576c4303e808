"""The record of an adoption: the former state of what it changed, from which a revert restores it.

It is a ConfigMap in the namespace of the release, written before the first change. It is found by its name in that
namespace only, where no tenant may write, and never by labels. A repeated adoption keeps the saved state and adds only
objects that it does not have, so that the state of an interrupted adoption is not taken for the former one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from shoal.install.manifest import Address
from shoal.install.release import Release
from shoal.units.errors import UserError, Where

Obj = dict[str, Any]
T = TypeVar("T")
COMPONENT = "adoption"
ADOPTING, ADOPTED, REVERTING = "adopting", "adopted", "reverting"
ADOPTION_PREFIX = "shoal-adoption-"
_FIELD = "record.json"


class SavedDeployment(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    replicas: int


class SavedHook(msgspec.Struct, frozen=True):
    kind: str
    name: str
    hooks: tuple[str, ...]
    """The names of its webhooks that lead to the project."""


class SavedDefinition(msgspec.Struct, frozen=True):
    name: str
    conversion: Obj
    provided: str | None = None
    """The value of the label by which Shoal serves the conversion, if there was one."""


class AdoptionRecord(msgspec.Struct, frozen=True):
    project: str
    namespace: str
    """Of the project."""
    state: str = ADOPTING
    deployments: tuple[SavedDeployment, ...] = ()
    hooks: tuple[SavedHook, ...] = ()
    definitions: tuple[SavedDefinition, ...] = ()
    api_services: tuple[Obj, ...] = ()
    """Whole objects, because they are deleted."""

    def with_state(self, state: str) -> AdoptionRecord:
        return msgspec.structs.replace(self, state=state)

    def over(self, former: AdoptionRecord | None) -> AdoptionRecord:
        """With what the former record has saved, and the objects that are new."""
        if former is None:
            return self
        return AdoptionRecord(
            self.project,
            former.namespace,
            self.state,
            _added(former.deployments, self.deployments, lambda one: (one.namespace, one.name)),
            _added(former.hooks, self.hooks, lambda one: (one.kind, one.name)),
            _added(former.definitions, self.definitions, lambda one: one.name),
            _added(former.api_services, self.api_services, lambda one: one["metadata"]["name"]),
        )


def _added(former: tuple[T, ...], found: Iterable[T], name_of: Any) -> tuple[T, ...]:
    known = {name_of(one) for one in former}
    return (*former, *(one for one in found if name_of(one) not in known))


def adoption_address(project: str, namespace: str) -> Address:
    return Address("v1", "ConfigMap", namespace, f"{ADOPTION_PREFIX}{project}")


def adoption_to_api(record: AdoptionRecord, release: Release) -> Obj:
    address = adoption_address(record.project, release.namespace)
    meta = {"name": address.name, "namespace": address.namespace, "labels": release.labels(COMPONENT)}
    data = {"state": record.state, _FIELD: msgspec.json.encode(record).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def adoption_from_api(config_map: Obj) -> AdoptionRecord:
    """Raises UserError for a ConfigMap of another form: what to restore is not known then."""
    meta = config_map["metadata"]
    try:
        return msgspec.json.decode((config_map.get("data") or {}).get(_FIELD, ""), type=AdoptionRecord)
    except msgspec.MsgspecError as error:
        where = Where(obj=f"ConfigMap {meta.get('namespace', '')}/{meta['name']}")
        fix = "restore it from a backup, or start the controllers of the project by hand and delete it"
        raise UserError(f"is not the record of an adoption: {error}", where=where, fix=fix) from None
