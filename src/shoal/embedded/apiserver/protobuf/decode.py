"""Protobuf bodies to objects: Kubernetes' envelope (four bytes, then the kind and the message) opened and read.

What cannot be read is the client's mistake and answered as Kubernetes does; no body raises anything but ApiError.
Kinds that are defined by the cluster's users have no protobuf form, here as there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from shoal.embedded.apiserver.protobuf.messages import messages
from shoal.embedded.apiserver.protobuf.wire import WireError, fields, text
from shoal.embedded.apiserver.status import ApiError, bad_request, unsupported_media_type

Obj = dict[str, Any]

PREFIX = b"k8s\x00"
_SHOWN = 30


class _Envelope(NamedTuple):
    api_version: str
    kind: str
    message: memoryview


def decode(body: bytes, kind: str = "") -> Obj:
    """The object in a body. `kind` is what the path takes, for the words of a refusal."""
    try:
        envelope = _open(body)
    except WireError as error:
        raise _unrecognized(body, kind, str(error)) from None
    if not envelope.kind:
        raise _unrecognized(body, kind, "Object 'Kind' is missing in 'unknown'")
    table = messages()
    message = table.of_kind(envelope.api_version, envelope.kind)
    if message is None:
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml"
        )
    try:
        obj = table.read(message, envelope.message)
    except WireError as error:
        version = envelope.api_version.rpartition("/")[2]
        words = f'{envelope.kind} in version "{version}" cannot be handled as a {kind or envelope.kind}: {error}'
        raise bad_request(words) from None
    obj["apiVersion"], obj["kind"] = envelope.api_version, envelope.kind
    return obj


def _open(body: bytes) -> _Envelope:
    if not body.startswith(PREFIX):
        raise WireError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
            if body
            else "empty data"
        )
    api_version = kind = ""
    message = memoryview(b"")
    for number, _, value in fields(memoryview(body)[len(PREFIX) :]):
        if isinstance(value, int):
            raise WireError("proto: wrong wireType = 0 for field Raw")
        if number == 1:
            for inner, _, name in fields(value):
                if not isinstance(name, int):
                    api_version, kind = (text(name), kind) if inner == 1 else (api_version, text(name))
        elif number == 2:
            message = value
    return _Envelope(api_version, kind, message)


def _unrecognized(body: bytes, kind: str, why: str) -> ApiError:
    expected = f" (must be of type {kind})" if kind else ""
    return bad_request(f"the object provided is unrecognized{expected}: {why} ({_summary(body)})")


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    shown, more = body[:_SHOWN], " ..." if len(body) > _SHOWN else ""
    return (shown.decode("utf-8", "replace") if body.startswith(b"{") else shown.hex()) + more
