"""A request's body as a plain object, whatever format it came in.

Guarantees: never another exception than `ApiError`; a body that is too large, too deep or malformed is refused in
Kubernetes' words; duplicate fields are named, and the last value counts. JSON is read by msgspec, and everything
around that is built so that a body without fault pays for nothing else.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from shoal.embedded.apiserver.bodies.duplicates import duplicate_fields, may_have_duplicates
from shoal.embedded.apiserver.bodies.json_fault import MAX_DEPTH, TOO_DEEP, json_fault
from shoal.embedded.apiserver.schema.go_values import json_kind
from shoal.embedded.apiserver.status import ApiError, bad_request, too_large, unsupported_media_type

Obj = dict[str, Any]

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

LIMIT_BYTES = 3 * 1024 * 1024

_SHOWN_BYTES = 30
_BARE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def decode(
    body: bytes, content_type: str, *, kind: str = "", with_duplicates: bool = True, takes_protobuf: bool = True
) -> tuple[Obj, list[str]]:
    """The object, and `duplicate field "spec.x"` for each duplicate field. `kind` is the one that is expected."""
    if len(body) > LIMIT_BYTES:
        raise too_large(LIMIT_BYTES)
    media = content_type.partition(";")[0].strip().lower()
    if media in (JSON, ""):
        return _from_json(body, kind, with_duplicates)
    if media == YAML:
        return _from_yaml(body, kind)
    if media == PROTOBUF and takes_protobuf:
        from shoal.embedded.apiserver.protobuf.decode import decode as from_protobuf

        return from_protobuf(body), []
    accepted = (JSON, YAML, PROTOBUF) if takes_protobuf else (JSON, YAML)
    known = ", ".join(accepted)
    raise unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {known}"
    )


def json_value(body: bytes) -> Any:
    """Any JSON value, for bodies that are no objects of a kind (patches); raises ValueError with Go's words."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = _mended(body)
    if is_too_deep(body, value):
        raise ValueError(TOO_DEEP)
    return value


def is_too_deep(body: bytes, value: Any) -> bool:
    """Brackets are counted first: a body with few of them cannot be deep."""
    if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return False
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return True
        level = [below for one in level for below in _children(one)]
    return False


def unrecognized(body: bytes, kind: str, words: str) -> ApiError:
    """The answer to a body of which not even the kind can be read."""
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {words} ({_summary(body)})")


def _from_json(body: bytes, kind: str, with_duplicates: bool) -> tuple[Obj, list[str]]:
    try:
        value = json_value(body)
    except ValueError as error:
        raise unrecognized(body, kind, f"couldn't get version/kind; json parse error: {error}") from None
    obj = _as_object(value, body, kind)
    if with_duplicates and may_have_duplicates(body, obj):
        return obj, duplicate_fields(body)
    return obj, []


def _from_yaml(body: bytes, kind: str) -> tuple[Obj, list[str]]:
    from shoal.embedded.apiserver.bodies.yaml_text import NotYamlError, from_yaml

    try:
        value, problems = from_yaml(body)
    except NotYamlError as error:
        raise unrecognized(body, kind, str(error)) from None
    return _as_object(value, body, kind), problems


def _as_object(value: Any, body: bytes, kind: str) -> Obj:
    if value is None:
        return {}
    if not isinstance(value, dict):
        words = f"json: cannot unmarshal {json_kind(value)} into Go value of type {_BARE}"
        raise unrecognized(body, kind, f"couldn't get version/kind; json parse error: {words}")
    for field in ("apiVersion", "kind"):
        found = value.get(field)
        if not (found is None or isinstance(found, str)):
            words = f"json: cannot unmarshal {json_kind(found)} into Go struct field .{field} of type string"
            raise unrecognized(body, kind, f"couldn't get version/kind; json parse error: {words}")
    return value


def _mended(body: bytes) -> Any:
    """What msgspec refuses and Go reads: bytes that are no UTF-8, halves of surrogate pairs."""
    fault = json_fault(body)
    if fault:
        raise ValueError(fault)
    try:
        text = json.dumps(json.loads(body.decode("utf-8", "replace")), ensure_ascii=False)
        # By way of UTF-16, in which a half of a pair can be written and is then replaced.
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return msgspec.json.decode(whole.encode())
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def _children(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value
    return [one for one in inner if isinstance(one, (dict, list))]


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    cut = body[:_SHOWN_BYTES]
    text = cut.decode("utf-8", "replace") if body.startswith(b"{") else cut.hex()
    return f"{text} ..." if len(body) > _SHOWN_BYTES else text
