"""The paths of the discovery documents themselves: one operation each, in a document of version 3 of its own."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.embedded.apiserver.openapi.definitions import META
from shoal.embedded.apiserver.openapi.dialect import Dialect, Json
from shoal.embedded.apiserver.openapi.operations import UNAUTHORIZED, camel
from shoal.embedded.apiserver.resource import Resource

_LIST = "get available API versions"


def of_groups(resources: Iterable[Resource]) -> list[str]:
    """Of the built-in groups: Kubernetes describes no other."""
    named = {f"apis/{one.group}" for one in resources if one.group and not one.is_custom}
    return ["api", "apis", *sorted(named)]


def group_path(path: str, dialect: Dialect) -> tuple[Json, str]:
    """The operation, and the definition of what it answers."""
    group = path.partition("/")[2]
    name = camel(group)
    said, tag, operation, definition = {
        "api": (_LIST, "core", "getCoreAPIVersions", "APIVersions"),
        "apis": (_LIST, "apis", "getAPIVersions", "APIGroupList"),
    }.get(path, ("get information of a group", name[:1].lower() + name[1:], f"get{name}APIGroup", "APIGroup"))
    answer = {**dialect.answer(f"{META}.{definition}", "200"), **UNAUTHORIZED}
    found = {"tags": [tag], "description": said, "operationId": operation, "responses": answer}
    return {f"/{path}/": {"get": found}}, f"{META}.{definition}"
