"""Describes the fault of refused requests: how many, which ones, and with which status."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_supported, wrong_type
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.server_faults.slow_api import verb_errors
from shoal.embedded.apiserver.status import ApiError

STATUSES = (409, 429, 500, 503)
_MOST = 10_000
_KIND = "RefusedRequests"
_TEXTS = ("resource", "namespace", "name")
_WHY = "refused by a fault on request"


class RefusedRequests(msgspec.Struct, frozen=True):
    status: int = 409
    count: int = 1
    """Requests to refuse before the fault ends by itself; 0 refuses none, which ends a present fault."""
    verbs: tuple[str, ...] = ()
    """Empty: all verbs."""
    resource: str = ""
    """The plural name; empty: all resources."""
    namespace: str = ""
    """Empty: all namespaces."""
    name: str = ""
    """Empty: all objects."""

    def matches(self, asked: RequestInfo) -> bool:
        """Whether a request is refused while the fault lasts."""
        return (
            asked.is_resource
            and (not self.verbs or asked.verb in self.verbs)
            and self.resource in ("", asked.resource)
            and self.namespace in ("", asked.namespace)
            and self.name in ("", asked.name)
        )

    def error(self, asked: RequestInfo) -> ApiError:
        """The refusal of one request, in the form that Kubernetes gives to this status."""
        if self.status == 409:
            return status.conflict(asked.resource, asked.group, asked.name)
        if self.status == 429:
            return status.too_many_requests(_WHY, 1)
        return status.internal(_WHY) if self.status == 500 else status.unavailable(_WHY)


def refused_requests(sent: Any) -> RefusedRequests:
    """The fault of a request body. ApiError 422 with all errors."""
    if not isinstance(sent, dict):
        raise status.invalid(_KIND, "", "", [wrong_type("", sent, "must be an object")])
    known = ("status", "count", "verbs", *_TEXTS)
    errors: list[FieldError] = [not_supported(name, name, known) for name in sent if name not in known]
    code, count = sent.get("status", 409), sent.get("count", 1)
    if isinstance(code, bool) or code not in STATUSES:
        errors.append(not_supported("status", code, tuple(map(str, STATUSES))))
    if isinstance(count, bool) or not isinstance(count, int):
        errors.append(wrong_type("count", count, "must be an integer"))
    elif not 0 <= count <= _MOST:
        errors.append(bad_value("count", count, f"must be between 0 and {_MOST}, inclusive"))
    errors += verb_errors(sent.get("verbs", []))
    errors += [
        wrong_type(name, sent[name], "must be a string") for name in _TEXTS if not isinstance(sent.get(name, ""), str)
    ]
    if errors:
        raise status.invalid(_KIND, "", "", errors)
    return msgspec.convert(sent, RefusedRequests)
