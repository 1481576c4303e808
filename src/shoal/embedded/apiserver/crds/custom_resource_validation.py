"""Everything that a version of a definition asks of its objects, in the order in which Kubernetes checks it.

Schema first, then objects embedded in objects, then lists, and rules in CEL only over an object whose shape is right:
an expression about a field of the wrong type has nothing to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shoal.embedded.apiserver.crds.embedded import embedded_errors
from shoal.embedded.apiserver.crds.lists import list_errors
from shoal.embedded.apiserver.crds.values import NOWHERE, value_errors
from shoal.embedded.apiserver.field_errors import FieldError, bad_value

if TYPE_CHECKING:
    from shoal.embedded.apiserver.crds.rules import SchemaRules

Obj = dict[str, Any]
_BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


class Validator:
    """One schema, ready to be asked. Rules are compiled when the first object with rules comes."""

    def __init__(self, published: Mapping[str, Any]) -> None:
        self._published = {key: value for key, value in published.items() if key != "x-kubernetes-embedded-resource"}
        self._has_rules = _has_rules(published)
        self._rules: SchemaRules | None = None

    def created(self, obj: Obj) -> list[FieldError]:
        faults = value_errors(_content(obj), self._published)
        return self._further(obj, None, faults)

    def updated(self, new: Obj, old: Obj) -> list[FieldError]:
        faults = value_errors(_content(new), self._published, "", _content(old))
        return self._further(new, old, faults)

    def _further(self, new: Obj, old: Obj | None, faults: list[FieldError]) -> list[FieldError]:
        faults = [*faults, *embedded_errors(new, self._published)]
        if old is None or not list_errors(old, self._published):
            faults += list_errors(new, self._published)
        if not self._has_rules:
            return faults
        if any(fault.reason in _BLOCKING for fault in faults):
            return [*faults, bad_value(NOWHERE, "null", _NOT_CHECKED)]
        return faults + self._ruled(new, old)

    def _ruled(self, new: Obj, old: Obj | None) -> list[FieldError]:
        if self._rules is None:
            from shoal.embedded.apiserver.crds.rules import SchemaRules

            self._rules = SchemaRules(self._published)
        return self._rules.errors(new, old)


def _content(obj: Obj) -> Obj:
    """Metadata was checked by the operations, but for what the schema itself says of its name."""
    return obj


def _has_rules(published: Any) -> bool:
    if isinstance(published, Mapping):
        if published.get("x-kubernetes-validations"):
            return True
        return any(_has_rules(one) for one in published.values())
    return isinstance(published, list) and any(_has_rules(one) for one in published)
