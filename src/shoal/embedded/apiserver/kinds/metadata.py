"""The checks of `metadata` that every kind shares, on creation and on update.

`rest/` calls them for every write, so the common case (a name, three labels, one owner) has to cost a few look-ups;
what is absent is not looked into.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, required, too_long
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed, add_faults, add_negative
from shoal.embedded.apiserver.kinds.labels import check_annotations, check_labels
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults, label_key_faults

NameFault = Callable[[str, bool], str]
"""`Strategy.name_fault`: why a name, or with True a prefix, is refused."""

_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_FIXED = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def check_metadata(
    obj: Obj, *, namespaced: bool, name_fault: NameFault, short_finalizers: bool = False
) -> list[FieldError]:
    """What is wrong with the metadata of a new object. Custom resources may have `short_finalizers`."""
    metadata = obj.get("metadata") or {}
    errors: Errors = []
    if prefix := metadata.get("generateName"):
        _add_fault(errors, "metadata.generateName", prefix, name_fault(prefix, True))
    if name := metadata.get("name"):
        _add_fault(errors, "metadata.name", name, name_fault(name, False))
    else:
        errors.append(required("metadata.name", "name or generateName is required"))
    namespace = metadata.get("namespace", "")
    if not namespaced:
        if namespace:
            errors.append(not_allowed("metadata.namespace", "not allowed on this type"))
    elif not namespace:
        errors.append(required("metadata.namespace"))
    else:
        add_faults(errors, "metadata.namespace", namespace, dns_label_faults(namespace))
    add_negative(errors, "metadata.generation", metadata.get("generation"))
    _check_common(metadata, errors, short_finalizers)
    return errors


def check_metadata_update(new: Obj, old: Obj, *, short_finalizers: bool = False) -> list[FieldError]:
    """What is wrong with a change of metadata. The operations have already taken over what a writer left out."""
    metadata, before = new["metadata"], old["metadata"]
    errors: Errors = []
    if "deletionTimestamp" in before:
        extra = sorted({*metadata.get("finalizers", ())} - {*before.get("finalizers", ())})
        if extra:
            listed = ", ".join(json.dumps(one) for one in extra)
            words = "no new finalizers can be added if the object is being deleted, found new finalizers"
            errors.append(not_allowed("metadata.finalizers", f"{words} []string{{{listed}}}"))
    if not metadata.get("resourceVersion"):
        value = metadata.get("resourceVersion", "")
        errors.append(bad_value("metadata.resourceVersion", value, "must be specified for an update"))
    if metadata.get("generation", 0) < before.get("generation", 0):
        errors.append(bad_value("metadata.generation", metadata.get("generation", 0), "must not be decremented"))
    for key in _FIXED:
        if metadata.get(key) != before.get(key):
            add_changed(errors, f"metadata.{key}", metadata.get(key), before.get(key))
    _check_common(metadata, errors, short_finalizers)
    return errors


def _add_fault(errors: Errors, path: str, value: str, fault: str) -> None:
    if fault:
        errors.append(bad_value(path, value, fault))


def _check_common(metadata: Obj, errors: Errors, short_finalizers: bool) -> None:
    if labels := metadata.get("labels"):
        check_labels(labels, "metadata.labels", errors)
    if annotations := metadata.get("annotations"):
        check_annotations(annotations, "metadata.annotations", errors)
    if owners := metadata.get("ownerReferences"):
        _check_owners(owners, errors)
    if finalizers := metadata.get("finalizers"):
        _check_finalizers(finalizers, errors, short_finalizers)
    for place, entry in enumerate(metadata.get("managedFields") or ()):
        _check_manager(entry, f"metadata.managedFields[{place}]", errors)


def _check_owners(owners: list[Obj], errors: Errors) -> None:
    path = "metadata.ownerReferences"
    controller = ""
    for owner in owners:
        api_version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
        if not api_version.rpartition("/")[2] or api_version.count("/") > 1:
            errors.append(bad_value(f"{path}.apiVersion", api_version, "version must not be empty"))
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                errors.append(bad_value(f"{path}.{key}", owner.get(key, ""), "must not be empty"))
        if api_version == "v1" and kind == "Event":
            errors.append(bad_value(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            named = f"{kind}/{owner.get('name', '')}"
            if controller:
                words = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {named}"
                )
                errors.append(bad_value(path, owners, words))
            else:
                controller = named


def _check_finalizers(finalizers: list[str], errors: Errors, short_finalizers: bool) -> None:
    for one in finalizers:
        add_faults(errors, "metadata.finalizers", one, label_key_faults(one))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        words = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(bad_value("metadata.finalizers", finalizers, words))
    if short_finalizers:
        return
    for place, one in enumerate(finalizers):
        if "/" not in one and one not in _STANDARD_FINALIZERS:
            words = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(bad_value(f"metadata.finalizers[{place}]", one, words))


def _check_manager(entry: Any, path: str, errors: Errors) -> None:
    if entry.get("operation") not in ("Apply", "Update"):
        errors.append(bad_value(f"{path}.operation", entry.get("operation", ""), "must be `Apply` or `Update`"))
    if entry.get("fieldsType", "FieldsV1") not in ("", "FieldsV1"):
        errors.append(bad_value(f"{path}.fieldsType", entry["fieldsType"], "must be `FieldsV1`"))
    if len(entry.get("manager", "").encode()) > 128:
        errors.append(too_long(f"{path}.manager", 128))
