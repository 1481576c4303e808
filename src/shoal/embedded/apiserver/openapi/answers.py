"""Answers requests below `/openapi`: the document, its format and its hash."""

from __future__ import annotations

import hashlib

import msgspec

from shoal.embedded.apiserver.openapi.dialect import JSON_BODY
from shoal.embedded.apiserver.openapi.documents import Documents
from shoal.embedded.apiserver.status import not_acceptable

V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_ASKS_FOR_PROTOBUF = "application/com.github.proto-openapi.spec.v2"

_PROTOBUF = "application/com.github.proto-openapi.spec."
_TAKEN = ("application/json", "application/*", "*/*")


class OpenApiResponse(msgspec.Struct, frozen=True):
    body: bytes
    content_type: str
    etag: str


def openapi_answer(documents: Documents, path: str, accept: str) -> OpenApiResponse | None:
    """None where the path has no document. JSON is sent unless the client prefers protobuf.

    Raises ApiError where the client takes neither.
    """
    parts = [part for part in path.split("/") if part]
    if parts == ["openapi", "v2"]:
        _check(accept)
        first = accept.partition(",")[0].strip()
        if first.startswith(_ASKS_FOR_PROTOBUF):
            return _answer(documents.document_v2_protobuf(), V2_PROTOBUF)
        return _answer(documents.document_v2(), JSON_BODY)
    if parts == ["openapi", "v3"]:
        return _answer(msgspec.json.encode(documents.index_v3()), JSON_BODY)
    group, version = "", ""
    if len(parts) == 4 and parts[:3] == ["openapi", "v3", "api"]:
        version = parts[3]
    elif len(parts) == 5 and parts[:3] == ["openapi", "v3", "apis"]:
        group, version = parts[3:]
    of_path = documents.document_of_group("/".join(parts[2:])) if parts[:2] == ["openapi", "v3"] else None
    document = documents.document_v3(group, version) if version else of_path
    if document is None:
        return None
    _check(accept)
    return _answer(document, JSON_BODY)


def _check(accept: str) -> None:
    media = [clause.partition(";")[0].strip() for clause in accept.split(",")]
    if accept and not any(one in _TAKEN or one.startswith(_PROTOBUF) for one in media):
        raise not_acceptable("406: Not Acceptable")


def _answer(body: bytes, content_type: str) -> OpenApiResponse:
    return OpenApiResponse(body, content_type, hashlib.sha256(body).hexdigest().upper())
