"""Everything that a version of a definition asks of its objects, in the order in which Kubernetes checks it.

Schema first, then objects embedded in objects, then lists, and rules in CEL only over an object whose shape is right:
an expression about a field of the wrong type has nothing to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shoal.embedded.apiserver.crds.lists import list_errors
from shoal.embedded.apiserver.crds.values import NOWHERE, value_errors
from shoal.embedded.apiserver.field_errors import FieldError, bad_value, required
from shoal.embedded.apiserver.names import LABEL_1035_WORDS, label_1035_fault, path_segment_fault

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
    """One schema, ready to be asked. Its rules are looked for and compiled when the first object comes."""

    def __init__(self, published: Mapping[str, Any]) -> None:
        self._published = {key: value for key, value in published.items() if key != "x-kubernetes-embedded-resource"}
        self._rules: SchemaRules | None = None

    @cached_property
    def _has_rules(self) -> bool:
        return _has_rules(self._published)

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
    if isinstance(published, dict):
        if published.get("x-kubernetes-validations"):
            return True
        return any(_has_rules(one) for one in published.values())
    return isinstance(published, list) and any(_has_rules(one) for one in published)


Published = Mapping[str, Any]


def embedded_errors(value: Any, published: Published, path: str = "") -> list[FieldError]:
    """What is wrong with every embedded object below a value."""
    faults: list[FieldError] = []
    if isinstance(value, dict):
        if published.get("x-kubernetes-embedded-resource"):
            faults += _object_errors(value, path)
        properties: Mapping[str, Published] = published.get("properties") or {}
        others = published.get("additionalProperties")
        for name, held in value.items():
            shape = properties.get(name, others)
            if isinstance(held, dict | list) and isinstance(shape, dict):
                below = f"{path}[{name}]" if name not in properties else f"{path}.{name}" if path else name
                faults += embedded_errors(held, shape, below)
    elif isinstance(value, list) and isinstance(published.get("items"), dict):
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                faults += embedded_errors(item, published["items"], f"{path}[{index}]")
    return faults


def _object_errors(value: dict[str, Any], path: str) -> list[FieldError]:
    faults = []
    for key in ("apiVersion", "kind"):
        held = value.get(key)
        where = f"{path}.{key}"
        if not isinstance(held, str):
            faults.append(required(where) if held is None else bad_value(where, held, "must be a string"))
        elif not held:
            faults.append(bad_value(where, held, "must not be empty"))
        elif key == "apiVersion" and held.count("/") > 1:
            faults.append(bad_value(where, held, f"unexpected GroupVersion string: {held}"))
        elif key == "kind" and label_1035_fault(held.lower()):
            words = f"may have mixed case, but should otherwise match: {LABEL_1035_WORDS}"
            faults.append(bad_value(where, held, words))
    name = (value.get("metadata") or {}).get("name") if isinstance(value.get("metadata"), dict) else None
    fault = path_segment_fault(name) if isinstance(name, str) and name else ""
    if fault:
        faults.append(bad_value(f"{path}.metadata.name", name, fault))
    return faults
