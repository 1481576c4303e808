"""Removes fields that an applier set before and sets no more, unless another manager owns them.

Three steps, each as Kubernetes does it: take away all that was set the last time; put back all that any manager owns
now; put back what was not set the last time, unless the structure around it was and goes.

If fields were set in another version, each step is done in the version in which its paths mean something, and
the object is converted there and back.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.apply.entries import ManagedFieldsEntry, Managers
from shoal.embedded.apiserver.apply.fieldset import Fields, difference, intersection, union
from shoal.embedded.apiserver.apply.owned import field_set
from shoal.embedded.apiserver.apply.removal import with_named_fields, without
from shoal.embedded.apiserver.apply.versions import Versions
from shoal.embedded.apiserver.schema.node import Schema
from shoal.units.errors import BugError

Obj = dict[str, Any]


def pruned(laid: Obj, managers: Managers, last: ManagedFieldsEntry, versions: Versions) -> Obj:
    """`laid` is the live object with the new configuration over it, `managers` have the new set of the applier."""
    if not last.fields:
        return laid
    there = versions.at(laid, last.api_version)
    if there is None:
        return laid
    if all(versions.is_same(entry.api_version) for entry in (last, *managers.values())):
        return _pruned(laid, _all_fields(managers), last.fields, versions.schema)
    return _pruned_across(laid, managers, last, versions, *there)


def _seen(versions: Versions, obj: Obj, api_version: str) -> tuple[Obj, Schema]:
    """In the version of the last apply, which is served: an entry of one that is not was forgotten before."""
    found = versions.at(obj, api_version)
    if found is None:
        raise BugError(f"fields are owned in {api_version}, which is not served")
    return found


def _pruned_across(
    laid: Obj, managers: Managers, last: ManagedFieldsEntry, versions: Versions, there: Obj, schema_there: Schema
) -> Obj:
    """`there` is `laid` in the version of the last configuration."""
    before = with_named_fields(last.fields, schema_there)
    kept = versions.back(without(there, before, schema_there, keeps_husks=True) or {})
    for api_version, owned in _fields_by_version(managers).items():
        whole, present = versions.at(laid, api_version), versions.at(kept, api_version)
        if whole is None or present is None:
            continue
        schema = whole[1]
        all_of = with_named_fields(field_set(whole[0], schema), schema)
        left = union(with_named_fields(field_set(present[0], schema), schema), with_named_fields(owned, schema))
        kept = versions.back(without(whole[0], difference(all_of, left), schema, keeps_husks=True) or {})
    present_there = versions.at(kept, last.api_version) or (kept, schema_there)
    all_of = with_named_fields(field_set(there, schema_there), schema_there)
    gone = difference(all_of, with_named_fields(field_set(present_there[0], schema_there), schema_there))
    return versions.back(without(there, intersection(gone, before), schema_there) or {})


def _pruned(laid: Obj, owned: Fields, last: Fields, schema: Schema) -> Obj:
    before = with_named_fields(last, schema)
    kept = without(laid, before, schema, keeps_husks=True) or {}
    all_of = with_named_fields(field_set(laid, schema), schema)
    left = union(with_named_fields(field_set(kept, schema), schema), with_named_fields(owned, schema))
    kept = without(laid, difference(all_of, left), schema, keeps_husks=True) or {}
    gone = difference(all_of, with_named_fields(field_set(kept, schema), schema))
    result: Obj = without(laid, intersection(gone, before), schema) or {}
    return result


def _fields_by_version(managers: Managers) -> dict[str, Fields]:
    owned: dict[str, Fields] = {}
    for entry in managers.values():
        owned[entry.api_version] = union(owned.get(entry.api_version, {}), entry.fields)
    return owned


def _all_fields(managers: Managers) -> Fields:
    owned: Fields = {}
    for entry in managers.values():
        owned = union(owned, entry.fields)
    return owned
