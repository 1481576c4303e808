"""Namespaces: the finalizer that keeps one until it is empty, and the label that selectors find it by."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.embedded.apiserver.field_errors import FieldError, bad_value
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.spellings import label_key_faults
from shoal.embedded.apiserver.names import label_fault
from shoal.embedded.apiserver.strategy import Strategy

KEEPER = "kubernetes"
"""The finalizer in `spec` under which the contents of a namespace are removed."""
NAME_LABEL = "kubernetes.io/metadata.name"
_KNOWN = (KEEPER, "orphan", "foregroundDeletion")


class NamespaceStrategy(Strategy):
    has_status = True
    counts_generation = False
    ends_when_empty = True

    def default(self, obj: Obj) -> None:
        metadata = obj.setdefault("metadata", {})
        if name := metadata.get("name"):
            labels = metadata.get("labels")
            if labels is None:
                labels = metadata["labels"] = {}
            labels[NAME_LABEL] = name
        obj.setdefault("spec", {})
        obj.setdefault("status", {}).setdefault("phase", "Active")

    def prepare_create(self, obj: Obj) -> None:
        obj["status"] = {"phase": "Active"}
        spec = obj["spec"] = dict(obj.get("spec") or {})
        finalizers = spec.get("finalizers") or []
        if KEEPER not in finalizers:
            spec["finalizers"] = [*finalizers, KEEPER]

    def is_held(self, obj: Obj) -> bool:
        """By the finalizers in its spec, which a controller takes away when it is empty."""
        return bool((obj.get("spec") or {}).get("finalizers"))

    def with_deletion_begun(self, obj: Obj, now: str) -> Obj:  # noqa: ARG002 - the signature is the strategy's
        obj.setdefault("status", {})["phase"] = "Terminating"
        return obj

    def prepare_update(self, new: Obj, old: Obj) -> None:
        super().prepare_update(new, old)
        new["spec"] = old.get("spec") or {}

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        for one in (obj.get("spec") or {}).get("finalizers") or ():
            check_finalizer(one, "spec.finalizers", errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        return []

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:
        phase = (new.get("status") or {}).get("phase", "")
        is_going = "deletionTimestamp" in old["metadata"]
        wanted = "Terminating" if is_going else "Active"
        if phase == wanted:
            return []
        words = f"may only be '{wanted}' if `deletionTimestamp` is {'not ' if is_going else ''}empty"
        return [bad_value("status.Phase", phase, words)]

    def name_fault(self, name: str, is_prefix: bool) -> str:
        return label_fault(name, is_prefix)

    def fields(self, obj: Obj) -> Mapping[str, str]:
        return {"status.phase": (obj.get("status") or {}).get("phase", ""), "name": obj["metadata"].get("name", "")}

    def selectable(self) -> tuple[str, ...]:
        return ("status.phase", "name")


def check_finalizer(finalizer: str, path: str, errors: Errors) -> None:
    add_faults(errors, path, finalizer, label_key_faults(finalizer))
    if "/" not in finalizer and finalizer not in _KNOWN:
        words = "name is neither a standard finalizer name nor is it fully qualified"
        errors.append(bad_value(path, finalizer, words))
