"""Kubernetes' `Status` of a failed request, as an exception.

Clients read code, reason and message, and some of them (client-go's retry helpers, controllers that wait for a
conflict) act on the reason. So every refusal of the API server is built here, by a function named like its reason,
in the words clients know.

Rejected: one exception class per reason. They are not caught separately; only their data differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from shoal.embedded.apiserver.field_errors import FieldError

LONGEST_TEXT = 64 * 1024
"""Characters of a message, and of all causes together: of an object with 100,000 faults only the first ones are
reported, since a `Status` is made on the event loop, in YAML too.
"""


class Cause(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One of the things that are wrong, with the field it is wrong in."""

    reason: str = ""
    message: str = ""
    field: str = ""


class ApiError(Exception):
    """A request that is refused, with all that the `Status` says of it."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}
        self.continues = ""
        """With what a list that has expired may go on, on newer objects."""

    def status(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": _bounded(self.message),
        }
        if self.continues:
            body["metadata"] = {"continue": self.continues}
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            causes = self.details.get("causes")
            body["details"] = {**self.details, "causes": _first(causes)} if causes else self.details
        body["code"] = self.code
        return body


def _bounded(text: str) -> str:
    left = len(text) - LONGEST_TEXT
    return text if left <= 0 else f"{text[:LONGEST_TEXT]}... ({left} more characters)"


def _first(causes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many as one answer has capacity for."""
    kept: list[dict[str, Any]] = []
    room = LONGEST_TEXT
    for cause in causes:
        bounded = {name: _bounded(text) for name, text in cause.items()}
        room -= sum(map(len, bounded.values()))
        if kept and room < 0:
            break
        kept.append(bounded)
    return kept


def success(details: dict[str, Any]) -> dict[str, Any]:
    """The `Status` that answers a deletion which is already done."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _details(name: str, group: str, kind: str, causes: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    if causes:
        details["causes"] = list(causes)
    return details


def qualified(resource: str, group: str) -> str:
    """`deployments.apps`; the core group has no suffix."""
    return f"{resource}.{group}" if group else resource


def not_found(resource: str, group: str, name: str) -> ApiError:
    words = f'{qualified(resource, group)} "{name}" not found'
    return ApiError(404, "NotFound", words, details=_details(name, group, resource))


def no_such_path() -> ApiError:
    """No resource is served at the path at all; clients tell this from a missing object by the bare words."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(resource: str, group: str, name: str) -> ApiError:
    words = f'{qualified(resource, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", words, details=_details(name, group, resource))


STALE = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(resource: str, group: str, name: str, why: str = STALE) -> ApiError:
    words = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return ApiError(409, "Conflict", words, details=_details(name, group, resource))


def apply_conflict(message: str, causes: Iterable[Cause]) -> ApiError:
    """Server-side apply met fields of other managers."""
    found = [msgspec.to_builtins(cause) for cause in causes]
    return ApiError(409, "Conflict", message, details={"causes": found})


_MOST_ERRORS = 1000


def invalid(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    # Each sentence once; the causes have all of them.
    texts = list(dict.fromkeys(error.text() for error in errors[:_MOST_ERRORS]))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [
        {"reason": error.reason, "message": error.body(), "field": error.field} for error in errors[:_MOST_ERRORS]
    ]
    words = f'{qualified(kind, group)} "{name}" is invalid: {listed}'
    return ApiError(422, "Invalid", words, details=_details(name, group, kind, causes))


def forbidden(resource: str, group: str, name: str, why: str) -> ApiError:
    if not resource:
        words = f"forbidden: {why}"
    elif name:
        words = f'{qualified(resource, group)} "{name}" is forbidden: {why}'
    else:
        words = f"{qualified(resource, group)} is forbidden: {why}"
    return ApiError(403, "Forbidden", words, details=_details(name, group, resource))


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def method_not_supported(resource: str, group: str) -> ApiError:  # noqa: ARG001 - callers say what was asked
    """The details are empty: Kubernetes answers this where a path has no such route, and there it knows no resource."""
    words = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", words, details={})


def not_acceptable(message: str, details: dict[str, Any] | None = None) -> ApiError:
    return ApiError(406, "NotAcceptable", message, details=details)


def unsupported_media_type(message: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", message)


def too_large(limit: int) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def expired(message: str) -> ApiError:
    """A resourceVersion or continue token older than the kept history."""
    return ApiError(410, "Expired", message)


def from_the_future(wanted: int, current: int) -> ApiError:
    words = f"Timeout: Too large resource version: {wanted}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ApiError(504, "Timeout", words, details={"retryAfterSeconds": 1, "causes": [cause]})


def too_many_requests(message: str, retry_after_s: int, causes: Sequence[dict[str, Any]] = ()) -> ApiError:
    details: dict[str, Any] = {"causes": list(causes)} if causes else {}
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
    headers = {"Retry-After": str(retry_after_s)} if retry_after_s else {}
    return ApiError(429, "TooManyRequests", message, details=details, headers=headers)


def internal(message: str) -> ApiError:
    words = f"Internal error occurred: {message}"
    return ApiError(500, "InternalError", words, details={"causes": [{"message": message}]})


def unavailable(message: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", message)
