"""One event in its two forms: that of the core group, in which it is kept, and that of events.k8s.io."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]

CORE, NEWER = "v1", "events.k8s.io/v1"
_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""Of the core group, and what the newer group calls them. Everything else has one name."""
_FORMER = {newer: core for core, newer in _NAMES.items()}
_ALWAYS: Obj = {"involvedObject": {}, "source": {}, "reportingComponent": "", "reportingInstance": ""}
"""What the core form always has, even empty. Times without a value are written as null by Go, and left out here."""


def to_core(event: Obj) -> Obj:
    """The event as the core group has it; the given one when it is that already."""
    if event.get("apiVersion") != NEWER:
        return event
    made: Obj = {_FORMER.get(key, key): value for key, value in event.items()} | {"apiVersion": CORE}
    for key, empty in _ALWAYS.items():
        if key not in made:
            made[key] = {} if empty == {} else empty
    return made


def to_newer(event: Obj) -> Obj:
    if event.get("apiVersion") == NEWER:
        return event
    made = {_NAMES.get(key, key): value for key, value in event.items()} | {"apiVersion": NEWER}
    for key in ("deprecatedSource", "reportingController", "reportingInstance", "deprecatedCount", "note"):
        # The newer form leaves out what is empty, but for the structures.
        if made.get(key) in ("", 0):
            del made[key]
    return made


def convert_event(event: Obj, to: str) -> Obj:
    """The event in another apiVersion; the given one is left as it is."""
    return to_newer(event) if to == NEWER else to_core(event)
