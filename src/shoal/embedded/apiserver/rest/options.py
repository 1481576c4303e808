"""Parses and checks the query options of reads and writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from shoal.embedded.apiserver.calls import FieldValidation
from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, not_supported, too_long
from shoal.embedded.apiserver.status import bad_request, invalid


class ReadOptions(msgspec.Struct, frozen=True):
    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continues: str = ""
    resource_version: str = ""
    match: Literal["", "Exact", "NotOlderThan"] = ""
    is_watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_s: int | None = None


class WriteOptions(msgspec.Struct, frozen=True):
    dry_run: bool = False
    manager: str = ""
    validation: FieldValidation = "Warn"
    force: bool | None = None


def read_options(query: Mapping[str, str]) -> ReadOptions:
    if not query:
        return _PLAIN_READ
    match = query.get("resourceVersionMatch", "")
    version = query.get("resourceVersion", "")
    watch = _truth(query, "watch")
    initial = None if "sendInitialEvents" not in query else _truth(query, "sendInitialEvents")
    _check_match(match, version, watch, initial, query.get("continue", ""))
    return ReadOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=max(_number(query, "limit") or 0, 0),
        continues=query.get("continue", ""),
        resource_version=version,
        match=match,  # type: ignore[arg-type]  # checked above
        is_watch=watch,
        bookmarks=_truth(query, "allowWatchBookmarks"),
        initial_events=initial,
        timeout_s=_number(query, "timeoutSeconds"),
    )


def write_options(query: Mapping[str, str], verb: str = "update") -> WriteOptions:
    """Refusals name the options as they are called for the verb."""
    if not query:
        return _PLAIN_WRITE
    dry, manager = query.get("dryRun", ""), query.get("fieldManager", "")
    validation = query.get("fieldValidation", "") or "Warn"
    errors: list[FieldError] = []
    if dry not in ("", "All"):
        errors.append(not_supported("dryRun", [dry], ("All",)))
    if len(manager.encode()) > LONGEST_MANAGER:
        errors.append(too_long("fieldManager", LONGEST_MANAGER))
    place = next((place for place, letter in enumerate(manager) if not letter.isprintable()), None)
    if place is not None:
        words = f"invalid character U+{ord(manager[place]):04X} (at position {place})"
        errors.append(bad_value("fieldManager", manager, words))
    if validation not in ("Strict", "Warn", "Ignore"):
        errors.append(not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    if errors:
        raise invalid(_KINDS.get(verb, "UpdateOptions"), "meta.k8s.io", "", errors)
    force = None if "force" not in query else _truth(query, "force")
    return WriteOptions(bool(dry), manager, validation, force)  # type: ignore[arg-type]  # checked above


_KINDS = {
    "create": "CreateOptions",
    "patch": "PatchOptions",
    "delete": "DeleteOptions",
    "deletecollection": "DeleteOptions",
}
LONGEST_MANAGER = 128
_NUMBER = re.compile(r"[+-]?[0-9]+")
_LONGEST_NUMBER = 64
_BEYOND = 1 << 63
_PLAIN_READ = ReadOptions()
_PLAIN_WRITE = WriteOptions()


def _check_match(match: str, version: str, watch: bool, initial: bool | None, continues: str) -> None:
    errors = _watch_errors(match, initial) if watch else _list_errors(match, version, initial)
    if match and continues:
        errors.append(_match_forbidden("resourceVersionMatch is forbidden when continue is provided"))
    if errors:
        raise invalid("ListOptions", "meta.k8s.io", "", errors)


def _watch_errors(match: str, initial: bool | None) -> list[FieldError]:
    errors: list[FieldError] = []
    if initial is not None and match != "NotOlderThan":
        errors.append(_match_forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match and initial is None:
        errors.append(
            _match_forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        )
    if match not in ("", "NotOlderThan"):
        errors.append(not_supported("resourceVersionMatch", match, ("NotOlderThan",)))
    return errors


def _list_errors(match: str, version: str, initial: bool | None) -> list[FieldError]:
    errors: list[FieldError] = []
    if match and not version:
        errors.append(_match_forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match not in ("", "Exact", "NotOlderThan"):
        errors.append(not_supported("resourceVersionMatch", match, ("Exact", "NotOlderThan", "")))
    if match == "Exact" and version == "0":
        errors.append(_match_forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if initial is not None:
        errors.append(not_allowed("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _match_forbidden(why: str) -> FieldError:
    return not_allowed("resourceVersionMatch", why)


def _truth(query: Mapping[str, str], name: str) -> bool:
    """As Go reads a query's truth: present and neither false nor 0 is true."""
    return name in query and query[name].lower() not in ("false", "0")


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    found = int(text) if len(text) <= _LONGEST_NUMBER else _BEYOND
    if not -_BEYOND <= found < _BEYOND:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return found
