"""Named formats: `format.dns1123Label().validate(name)` is an optional list of what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.functions.overload import Table, row
from shoal.embedded.apiserver.cel.functions.times import parse_timestamp
from shoal.embedded.apiserver.cel.values import NONE, Opaque, Optional
from shoal.embedded.apiserver.names import label_1035_fault, label_fault, subdomain_fault
from shoal.embedded.apiserver.schema.formats import format_fault

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_QUALIFIED_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


_LABEL_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_NAME_WORDS = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def _label_value(text: str) -> str:
    if len(text) > 63:
        return "must be no more than 63 characters"
    return "" if _LABEL_VALUE.fullmatch(text) else _LABEL_WORDS


def _qualified_name(text: str) -> str:
    prefix, slash, name = text.rpartition("/")
    if slash and (not prefix or subdomain_fault(prefix)):
        return "prefix part must be a valid DNS subdomain"
    if not name or len(name) > 63 or not _QUALIFIED_PART.fullmatch(name):
        return _NAME_WORDS
    return ""


def _of_format(name: str, words: str) -> Callable[[str], str]:
    return lambda text: words if format_fault(name, text) else ""


def _datetime(text: str) -> str:
    try:
        parse_timestamp(text)
    except CelFault:
        return "invalid datetime"
    return ""


_FORMATS: dict[str, Callable[[str], str]] = {
    "dns1123Label": label_fault,
    "dns1123Subdomain": subdomain_fault,
    "dns1035Label": label_1035_fault,
    "dns1123LabelPrefix": lambda text: label_fault(text, is_prefix=True),
    "dns1123SubdomainPrefix": lambda text: subdomain_fault(text, is_prefix=True),
    "dns1035LabelPrefix": lambda text: label_1035_fault(text, is_prefix=True),
    "qualifiedName": _qualified_name,
    "labelValue": _label_value,
    "uri": _of_format("uri", "invalid URI"),
    "uuid": _of_format("uuid", "does not match the UUID format"),
    "byte": _of_format("byte", "invalid base64"),
    "date": _of_format("date", "invalid date"),
    "datetime": _datetime,
}


def _validate(made: Opaque, text: str) -> Optional:
    words = _FORMATS[made.held](text)
    return Optional([words]) if words else NONE


def _named(name: str) -> Optional:
    return Optional(Opaque("format", name)) if name in _FORMATS else NONE


def _constant(name: str) -> Callable[[], Any]:
    made = Opaque("format", name)
    return lambda: made


TABLE: Table = (
    *(row(f"format.{name}() format", _constant(name)) for name in _FORMATS),
    row("format.named(string) optional_type", _named),
    row("format!validate(string) optional_type", _validate),
)
