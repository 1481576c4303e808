"""Defines the refusals of an API server as error types, by the reaction that they require of the caller. Both adapters
translate their errors to these types.

`ConflictError` and `TemporaryError` (units/errors.py) tell the caller to retry, which loops do by themselves. The
others are answers that a controller expects and handles: not found, already exists, expired, forbidden, invalid.
"""

from __future__ import annotations

import re
from typing import Any

from shoal.units.errors import ConflictError, ShoalError, TemporaryError

_DENIED = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) '
    r'(?:resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"(?: in the namespace "(?P<namespace>[^"]*)")?'
    r'|path "(?P<path>[^"]+)")'
)


_UID = "metadata.uid"


class RefusedError(ShoalError):
    """The server refused the request. `reason`: its one-word reason; `details`: its details (causes,
    retryAfterSeconds).
    """

    code = 0

    def __init__(self, what: str, *, reason: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(what)
        self.reason = reason
        self.details = details or {}


class NotFoundError(RefusedError):
    code = 404


class AlreadyExistsError(RefusedError):
    code = 409


class ForbiddenError(RefusedError):
    """Forbidden by RBAC, or over quota: `what` is the server's message.

    For RBAC, `verb` and the following fields are parsed from it; `rbac_advice.py` derives the missing rule.
    """

    code = 403

    def __init__(self, what: str, *, reason: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(what, reason=reason, details=details)
        found = _DENIED.search(what)
        said = found.groupdict(default="") if found is not None else {}
        self.user = said.get("user", "")
        self.verb = said.get("verb", "")
        """Empty if the cause was not RBAC, but a quota, for example."""
        self.resource = said.get("resource", "")
        """The resource with its subresource: `pods/binding`."""
        self.group = said.get("group", "")
        self.namespace = said.get("namespace", "")
        """Empty: all namespaces, or a cluster-wide resource."""
        self.path = said.get("path", "")
        """A path instead of a resource: `/metrics`."""
        self.is_reported = False
        """Whether the log already has the rule that would allow it."""


class UnauthorizedError(RefusedError):
    code = 401


class InvalidError(RefusedError):
    code = 422


class ExpiredError(RefusedError):
    """The server no longer has the version to continue from: list again."""

    code = 410


class BadRequestError(RefusedError):
    """Any other refusal that a retry does not resolve."""

    code = 400


class StaleError(RefusedError, ConflictError):
    """The object was written by another client first: read and decide again."""

    code = 409


NO_ANSWER = "NoAnswer"
"""The reason of a BusyError without an answer of the server."""


class BusyError(TemporaryError):
    """429, 500, 503, 504, or no connection: the result of a write is unknown. Retry after `delay_s`."""

    def __init__(
        self, what: str, delay_s: float = 1.0, *, code: int = 503, reason: str = "", details: Any = None
    ) -> None:
        super().__init__(what, delay_s)
        self.code = code
        self.reason = reason
        self.details: dict[str, Any] = details or {}


class LeaseEndedError(BusyError):
    """A write was not sent because this process is no longer the leader."""

    def __init__(self) -> None:
        super().__init__("nothing is written: the lease was not renewed in time, and another may lead")


def refusal_of(status: dict[str, Any], retry_after_s: float = 0.0) -> RefusedError | BusyError:
    """The refusal of a `Status` object."""
    code = int(status.get("code") or 500)
    reason, words = str(status.get("reason") or ""), str(status.get("message") or f"the server answered {code}")
    details = status.get("details") or {}
    if code in (408, 429, 500, 502, 503, 504):
        wait_s = retry_after_s or float(details.get("retryAfterSeconds") or 1.0)
        return BusyError(words, wait_s, code=code, reason=reason, details=details)
    if code == 409 or (code == 422 and _is_another(details)):
        kind: type[RefusedError] = AlreadyExistsError if reason == "AlreadyExists" else StaleError
    else:
        kind = _BY_CODE.get(code, BadRequestError)
    return kind(words, reason=reason, details=details)


def _is_another(details: dict[str, Any]) -> bool:
    """Whether a patch named a deleted object: a patch has no preconditions, so servers treat its uid as an immutable
    field.
    """
    return any(cause.get("field") == _UID for cause in details.get("causes") or () if isinstance(cause, dict))


_BY_CODE: dict[int, type[RefusedError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    410: ExpiredError,
    422: InvalidError,
}
