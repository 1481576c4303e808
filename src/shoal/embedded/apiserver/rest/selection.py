"""Selects the objects of a list or watch by label and field selectors, without decoding the objects.

Records carry labels and selectable fields, so that selecting reads no bodies.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.api.selector_text import parse_label_selector
from shoal.api.selectors import Selector
from shoal.embedded.apiserver.names import path_segment_fault
from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.rest.label_faults import label_selector_fault
from shoal.embedded.apiserver.state.record import Record
from shoal.embedded.apiserver.status import ApiError, bad_request
from shoal.units.errors import UserError

_ALWAYS = ("metadata.name", "metadata.namespace")


class FieldTerm(msgspec.Struct, frozen=True):
    field: str
    value: str
    equal: bool


class Selection(msgspec.Struct, frozen=True):
    """The conjunction of a label selector and field terms, and the namespace and name that follow from it."""

    labels: Selector
    fields: tuple[FieldTerm, ...]

    def is_everything(self) -> bool:
        return not self.fields and self.labels.is_everything()

    def selects(self, record: Record) -> bool:
        return self.holds(record.ref.namespace, record.ref.name, record.labels, record.fields)

    def holds(self, namespace: str, name: str, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        for term in self.fields:
            if term.field == "metadata.name":
                found = name
            elif term.field == "metadata.namespace":
                found = namespace
            else:
                found = fields.get(term.field, "")
            if (found == term.value) is not term.equal:
                return False
        return self.labels.matches(labels)

    def only_name(self) -> str | None:
        """The name that alone can match; a watch for it need not look at others."""
        return next((term.value for term in self.fields if term.field == "metadata.name" and term.equal), None)


EVERYTHING = Selection(Selector.EVERYTHING, ())


def name_asked_for(field_selector: str) -> str:
    """The name that a list or watch is confined to: who may read that object alone may ask for it so. Read before the
    resource is known, because authorization comes first; from a selector that cannot be read no name follows."""
    name = next((value for field, value in fields_asked_for(field_selector) if field == "metadata.name"), "")
    return "" if path_segment_fault(name) else name


def fields_asked_for(field_selector: str) -> tuple[tuple[str, str], ...]:
    """Field and value of all equalities; none of a selector that cannot be read."""
    try:
        terms = [(_split(piece, field_selector), piece) for piece in _pieces(field_selector)]
        return tuple((field, _unescaped(value, piece)) for (field, equal, value), piece in terms if equal)
    except ApiError:
        return ()


def selection(resource: Resource, labels: str, fields: str) -> Selection:
    if not labels and not fields:
        return EVERYTHING
    try:
        selector = parse_label_selector(labels) if labels else Selector.EVERYTHING
    except UserError as error:
        raise bad_request(label_selector_fault(labels) or f"unable to parse requirement: {error.what}") from error
    return Selection(selector, _terms(resource, fields))


def _terms(resource: Resource, text: str) -> tuple[FieldTerm, ...]:
    found: list[FieldTerm] = []
    known = (*_ALWAYS, *resource.strategy.selectable())
    for piece in _pieces(text):
        field, equal, value = _split(piece, text)
        if field not in known:
            raise bad_request(_unknown_field(resource, field))
        found.append(FieldTerm(field, _unescaped(value, piece), equal))
    return tuple(found)


def _unknown_field(resource: Resource, field: str) -> str:
    if resource.is_custom or resource.strategy.selectable():
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _pieces(text: str) -> list[str]:
    """Terms between commas that are not escaped."""
    pieces, current, escaped = [], "", False
    for letter in text:
        if letter == "," and not escaped:
            pieces.append(current)
            current = ""
            continue
        escaped = letter == "\\" and not escaped
        current += letter
    return [piece for piece in (*pieces, current) if piece]


def _split(piece: str, whole: str) -> tuple[str, bool, str]:
    for sign, equal in (("!=", False), ("==", True), ("=", True)):
        field, found, value = piece.partition(sign)
        if found:
            return field, equal, value
    raise bad_request(f"invalid selector: '{whole}'; can't understand '{piece}'")


def _unescaped(value: str, piece: str) -> str:
    result, letters = "", iter(value)
    for letter in letters:
        if letter == "\\":
            follows = next(letters, "")
            if follows not in ("\\", ",", "=") or not follows:
                raise bad_request(f"invalid field selector: invalid escape sequence in {piece}")
            result += follows
        elif letter in (",", "="):
            raise bad_request(f"invalid field selector: unescaped {letter} in {piece}")
        else:
            result += letter
    return result
