"""Continue tokens: where a page of a list ended, and at which revision the list is read.

They are opaque to clients. They have the form of Kubernetes' tokens all the same, so that what is refused, and with
which words, is the same.
"""

from __future__ import annotations

import base64
import posixpath
import re
from typing import Any

import msgspec

from shoal.embedded.apiserver.bodies.json_fault import json_fault
from shoal.embedded.apiserver.schema.go_values import json_kind
from shoal.embedded.apiserver.status import ApiError, bad_request

_VERSION = "meta.k8s.io/v1"
_FIELDS = {"v": ("string", str), "rv": ("int64", int), "start": ("string", str)}
_LONGEST = 2048
_OUTSIDE = re.compile(r"[^A-Za-z0-9_-]")
_END = "\0"
"""What follows the last key, so that the next page begins after it."""


class Position(msgspec.Struct, frozen=True):
    revision: int
    namespace: str
    name: str


def token(position: Position) -> str:
    start = f"{position.namespace}/{position.name}{_END}"
    text = msgspec.json.encode({"v": _VERSION, "rv": position.revision, "start": start})
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def position_of(text: str) -> Position:
    found = _read(text)
    if found.get("v", "") != _VERSION:
        raise _not_valid(f"server does not recognize this encoded version {found.get('v', '')}")
    if not found.get("rv"):
        raise _not_valid(f"incorrect encoded start resourceVersion (version {_VERSION})")
    start = found.get("start", "")
    if not start:
        raise _not_valid(f"encoded start key empty (version {_VERSION})")
    key = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(key) != key:
        raise _not_valid(start)
    namespace, _, name = start.rpartition("/")
    return Position(found["rv"], namespace, name.removesuffix(_END))


def _read(text: str) -> dict[str, Any]:
    raw = _bytes_of("".join(text[:_LONGEST].split("\n")).replace("\r", ""))
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, ValueError):
        raise _not_valid(json_fault(raw) or "invalid UTF-8") from None
    if found is not None and not isinstance(found, dict):
        raise _not_valid(f"json: cannot unmarshal {json_kind(found)} into Go value of type storage.continueToken")
    kept = {}
    for key, (go_type, wanted) in _FIELDS.items():
        value = (found or {}).get(key)
        if value is None:
            continue
        if not isinstance(value, wanted) or isinstance(value, bool):
            where = f"Go struct field continueToken.{key} of type {go_type}"
            raise _not_valid(f"json: cannot unmarshal {json_kind(value)} into {where}")
        kept[key] = value
    return kept


def _bytes_of(text: str) -> bytes:
    strange = _OUTSIDE.search(text)
    if strange:
        raise _not_base64(len(text[: strange.start()].encode()))
    left = len(text) % 4
    if left == 1:
        raise _not_base64(len(text) - 1)
    return base64.urlsafe_b64decode(text + "=" * (-left % 4))


def _not_base64(place: int) -> ApiError:
    return _not_valid(f"illegal base64 data at input byte {place}")


def _not_valid(why: str) -> ApiError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")
