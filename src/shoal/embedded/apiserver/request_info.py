"""Describes the target of a request as Kubernetes' RequestInfo: a verb on a resource, object, subresource or other
path.

The path is parsed here; `server/request_verb.py` adds the verb. Authorizers are asked about the same value.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec


class RequestInfo(msgspec.Struct, frozen=True):
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    """The plural name of the resource."""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    """The whole path of a request that came by HTTP."""
    is_resource: bool = True
    """False for paths such as `/metrics`: then only `verb` and `path` are set."""
    fields: tuple[tuple[str, str], ...] = ()
    """Fields and values that the field selector of a collection requires. Only the node authorizer reads them."""
    rest: str = ""
    """The part of the path after the subresource, for proxies."""
    in_namespace: bool = False
    """Whether the path has `namespaces/NAME` before the resource. The path of a Namespace itself has not."""
    is_old_watch: bool = False
    """Whether the path has the deprecated form with `/watch/`."""

    @classmethod
    def of_path(cls, verb: str, path: str) -> RequestInfo:
        """A request for a path that is not a resource."""
        return cls(verb, path=path, is_resource=False)


_OF_NAMESPACES = ("status", "finalize")


_LONGEST_CACHED = 300
"""Longer paths are parsed each time: made-up ones would fill the memory."""


def parse_path(path: str) -> RequestInfo:
    return _cached(path) if len(path) <= _LONGEST_CACHED else _parsed(path)


def _parsed(path: str) -> RequestInfo:
    """Empty segments are kept, as in Kubernetes: without them, the path would name another object than the one that the
    server behind an aggregated API reads from the same path."""
    if path.startswith("//"):
        return RequestInfo.of_path("", path)
    parts = path.strip("/").split("/")
    if len(parts) >= 3 and parts[0] == "api":
        return _resource(path, "", parts[1], parts[2:])
    if len(parts) >= 4 and parts[0] == "apis":
        return _resource(path, parts[1], parts[2], parts[3:])
    return RequestInfo.of_path("", path)


_cached = lru_cache(maxsize=4096)(_parsed)


def _resource(path: str, group: str, version: str, parts: list[str]) -> RequestInfo:
    is_old_watch = parts[0] == "watch" and len(parts) > 1
    if is_old_watch:
        parts = parts[1:]
    namespace, in_namespace = "", False
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        in_namespace = len(parts) > 2 and parts[2] not in _OF_NAMESPACES
        if in_namespace:
            parts = parts[2:]
    plural, name, subresource, *rest = [*parts, "", ""][: max(3, len(parts))]
    return RequestInfo(
        "",
        group,
        version,
        plural,
        subresource,
        namespace,
        name,
        path,
        rest="/".join(rest),
        in_namespace=in_namespace,
        is_old_watch=is_old_watch,
    )
