"""The authorizer of policies: `authorizer.group("apps").resource("deployments").check("delete").allowed()`.

The variable is made by `authorizer`, around a function that answers whether the requester may do what is asked.
`jsonpatch.escapeKey` is here too: the two are what only policies use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.embedded.apiserver.cel.functions.overload import Table, row
from shoal.embedded.apiserver.cel.values import Opaque
from shoal.embedded.apiserver.request_info import RequestInfo

Check = Callable[[str, RequestInfo], tuple[bool, str]]
"""Of a service account (`namespace:name`; empty: the requester) and a question, whether it is allowed and why."""


class _Question(msgspec.Struct, frozen=True):
    check: Check
    requested: RequestInfo
    who: str = ""
    attributes: RequestInfo = RequestInfo("")


def authorizer(check: Check, requested: RequestInfo) -> Opaque:
    """The value of the variable `authorizer`; `requested` is what the request being decided is about."""
    return Opaque("authorizer", _Question(check, requested))


def request_resource(value: Opaque) -> Opaque:
    """What `authorizer.requestResource` comes to."""
    question: _Question = value.held
    return Opaque("resource_check", msgspec.structs.replace(question, attributes=question.requested))


def _with(kind: str, **fixed: Any) -> Callable[[Opaque], Opaque]:
    def made(on: Opaque) -> Opaque:
        return Opaque(kind, msgspec.structs.replace(on.held, attributes=_replaced(on.held.attributes, **fixed)))

    return made


def _replaced(attributes: RequestInfo, **changes: Any) -> RequestInfo:
    return msgspec.structs.replace(attributes, **changes)


def _step(kind: str, field: str) -> Callable[[Opaque, str], Opaque]:
    return lambda on, value: _with(kind, **{field: value})(on)


def _service_account(on: Opaque, namespace: str, name: str) -> Opaque:
    return Opaque("authorizer", msgspec.structs.replace(on.held, who=f"{namespace}:{name}"))


def _check(on: Opaque, verb: str) -> Opaque:
    question: _Question = on.held
    allowed, reason = question.check(question.who, _replaced(question.attributes, verb=verb))
    return Opaque("decision", (allowed, reason))


TABLE: Table = (
    row("authorizer!path(string) path_check", _step("path_check", "path")),
    row("authorizer!group(string) group_check", _step("group_check", "group")),
    row("authorizer!serviceAccount(string, string) authorizer", _service_account),
    row("group_check!resource(string) resource_check", _step("resource_check", "resource")),
    row("resource_check!subresource(string) resource_check", _step("resource_check", "subresource")),
    row("resource_check!namespace(string) resource_check", _step("resource_check", "namespace")),
    row("resource_check!name(string) resource_check", _step("resource_check", "name")),
    row("resource_check!fieldSelector(string) resource_check", lambda on, _: on),
    row("resource_check!labelSelector(string) resource_check", lambda on, _: on),
    row("path_check!check(string) decision", _check),
    row("resource_check!check(string) decision", _check),
    row("decision!allowed() bool", lambda on: on.held[0]),
    row("decision!reason() string", lambda on: on.held[1]),
    row("decision!errored() bool", lambda _: False),
    row("decision!error() string", lambda _: ""),
    row("jsonpatch.escapeKey(string) string", lambda key: key.replace("~", "~0").replace("/", "~1")),
)
