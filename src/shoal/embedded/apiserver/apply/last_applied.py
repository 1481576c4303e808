"""Objects that came from client-side apply and are now applied on the server.

`kubectl apply` keeps what it applied in an annotation and owns it as an updater. When the manager `kubectl` applies on
the server for the first time, fields that still have the value the annotation gives them are no conflict: the same
user set them. Afterwards the annotation follows what is applied, so that going back to client-side apply stays safe.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.embedded.apiserver.apply.changes import both, changes
from shoal.embedded.apiserver.apply.elements import ItemError
from shoal.embedded.apiserver.apply.fieldset import Fields, difference
from shoal.embedded.apiserver.apply.owned import field_set
from shoal.embedded.apiserver.patches.copying import copied
from shoal.embedded.apiserver.schema.node import Schema

Obj = dict[str, Any]

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
_LONGEST_ANNOTATIONS = 256 * 1024


def _annotations(obj: Obj) -> Obj:
    found = (obj.get("metadata") or {}).get("annotations")
    return found if isinstance(found, dict) else {}


def still_as_applied(live: Obj, api_version: str, schema: Schema) -> Fields | None:
    """The fields that live has as the annotation says; None without an annotation that can be read."""
    text = _annotations(live).get(ANNOTATION)
    if not text:
        return None
    try:
        last = msgspec.json.decode(text)
        if not isinstance(last, dict) or last.get("apiVersion") != api_version:
            return None
        return difference(field_set(last, schema), both(changes(last, live, schema)))
    except (msgspec.DecodeError, ItemError):
        return None


def follow(result: Obj, config: Obj) -> None:
    """Write what was applied into the annotation of `result`, where it has one."""
    annotations = _annotations(result)
    if not annotations.get(ANNOTATION):
        return
    applied = copied(config)
    _annotations(applied).pop(ANNOTATION, None)
    annotations[ANNOTATION] = _as_go_writes(applied) + "\n"
    if sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items()) > _LONGEST_ANNOTATIONS:
        del annotations[ANNOTATION]


_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def _as_go_writes(value: Obj) -> str:
    return msgspec.json.encode(value, order="sorted").decode().translate(_ESCAPES)
