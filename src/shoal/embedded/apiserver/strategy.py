"""The behavior of one kind: defaults, fields that a writer may change, validation.

The REST operations (`rest/`) call these at fixed points of every write; a kind overrides what is its own and inherits
the rest. Objects are plain JSON values in the requested version and may be changed in place where a method returns
None. Everything here is pure: no state of other objects, no clock (times are set by the operations). What depends on
other objects is admission's (`admission/`).

Order of a create: decode, `default`, admission changes, `prepare_create`, `validate`, validating admission, store.
Order of an update: the new object is defaulted, admission, `prepare_update`, `validate_update`, validating, store.
"""

# ruff: noqa: ARG002 - what the base does not look at, kinds do

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from shoal.embedded.apiserver.field_errors import IMMUTABLE, FieldError, bad_value

Obj = dict[str, Any]
_NO_FIELDS: Mapping[str, str] = {}


class Strategy:
    """The behaviour of kinds that need nothing special; base of all others."""

    has_status = False
    """Whether `status` is written through the subresource only."""
    initial_status: Mapping[str, Any] | None = None
    """The status of a new object, whatever its writer sent; None where that is no status."""
    immutable_fields: tuple[str, ...] = ()
    """The paths of fields that an update must not change."""
    counts_generation = True
    """Whether metadata.generation counts changes of anything but metadata and status."""
    deprecation = ""
    """The warning for users of this version; empty if it is not deprecated."""
    needs_version = False
    """Whether a PUT has to name the resourceVersion that it changes."""
    creates_on_update = False
    """Whether PUT to a name that does not exist creates it."""
    grace_s: int | None = None
    """Whether deletion is graceful; pods answer `deletion_grace` instead."""

    orphans_by_default = False
    """Whether deletion without a propagation policy leaves the dependents (Jobs do)."""
    orphaning_warning = ""
    """What a deletion that orphans by default is warned of."""
    ends_when_empty = False
    """Whether a deletion waits for what the object holds. Such a one carries the time of it and no grace period."""
    deletion_finalizer = ""
    """Under which the server itself keeps a deleted object until it has cleaned up after it."""
    returns_deleted = False
    """Whether a deletion that is done answers with the object instead of a Status."""

    def default(self, obj: Obj) -> None:
        """Fill in what the API fills in. Runs on every write and must change nothing the second time."""

    def prepare_create(self, obj: Obj) -> None:
        if self.initial_status is not None:
            obj["status"] = deepcopy(self.initial_status)
        elif self.has_status:
            obj.pop("status", None)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """What a writer of the main resource may not touch is taken from the old object."""
        if self.has_status:
            _keep(new, old, "status")

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """A writer of the status may touch nothing else, but for metadata that the operations guard."""
        for key in {*new, *old} - {"status", "metadata", "apiVersion", "kind"}:
            _keep(new, old, key)
        keep_metadata(new, old)

    def validate(self, obj: Obj) -> list[FieldError]:
        """What is wrong with a new object. Names, labels and annotations are checked by the operations."""
        return []

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        """The errors of an update: those of a new object, and changes of immutable fields."""
        errors = self.validate(new)
        for path in self.immutable_fields:
            value = _value_at(new, path)
            if value != _value_at(old, path):
                errors.append(bad_value(path, value, IMMUTABLE))
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:
        return []

    def name_fault(self, name: str, is_prefix: bool) -> str:
        """Why a name is not one for this kind, in Kubernetes' words; empty when it is. generateName gives a prefix."""
        from shoal.embedded.apiserver.names import subdomain_fault

        return subdomain_fault(name, is_prefix)

    def fields(self, obj: Obj) -> Mapping[str, str]:
        """What field selectors may ask for, beyond metadata.name and metadata.namespace."""
        return _NO_FIELDS

    def selectable(self) -> tuple[str, ...]:
        """The names of `fields`, whatever the object."""
        return ()

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        """What a writer should know though it is accepted; sent as `Warning` headers."""
        return []

    is_graceful = False
    """Whether a deletion gives the object time to end: then it shows how much, even if that is none."""

    def deletion_grace(self, obj: Obj, asked_s: int | None) -> int:
        """How many seconds the object is given to end by itself; 0 removes it at once."""
        return 0

    def deletion_fault(self, name: str) -> str:
        """Why the object of this name may not be deleted by name; empty if it may."""
        return ""

    def is_held(self, obj: Obj) -> bool:
        """Whether something beside metadata.finalizers keeps a deleted object there."""
        return False

    def with_deletion_begun(self, obj: Obj, now: str) -> Obj:
        """The object as it shows that it is going; it may be changed in place."""
        return obj

    def generation_changed(self, new: Obj, old: Obj) -> bool:
        keys = {*new, *old} - {"metadata", "status", "apiVersion", "kind"}
        return any(new.get(key) != old.get(key) for key in keys)


def _value_at(obj: Obj, path: str) -> Any:
    value: Any = obj
    for key in path.split("."):
        value = (value or {}).get(key)
    return value


def keep_metadata(new: Obj, old: Obj) -> None:
    """The metadata that users write stays as it is: who may write a subresource need not hold the right to it."""
    for key in ("labels", "annotations", "finalizers", "ownerReferences"):
        _keep(new["metadata"], old["metadata"], key)


def _keep(new: Obj, old: Obj, key: str) -> None:
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


GENERIC = Strategy()
