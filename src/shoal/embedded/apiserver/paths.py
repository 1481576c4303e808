"""What a path of the API means: a resource, an object, a door below it, or a document."""

from __future__ import annotations

from functools import lru_cache

import msgspec


class Target(msgspec.Struct, frozen=True):
    """The parts of a path. Of what is no resource only `path` is set."""

    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """What follows the subresource (proxies)."""
    in_namespace: bool = False
    """The path has `namespaces/NAME` before the resource. The path of a Namespace itself has not."""
    is_old_watch: bool = False
    """The deprecated form with `/watch/` in the path."""


_OF_NAMESPACES = ("status", "finalize")


_KEPT_LETTERS = 300
"""Longer paths are understood each time: made-up ones would fill the memory."""


def target_of(path: str) -> Target:
    return _kept(path) if len(path) <= _KEPT_LETTERS else _understood(path)


def _understood(path: str) -> Target:
    """Empty segments are kept, as Kubernetes keeps them: without them another object would be named than the one that
    the server behind an aggregated API reads from the same path."""
    if path.startswith("//"):
        return Target(path)
    parts = path.strip("/").split("/")
    if len(parts) >= 3 and parts[0] == "api":
        return _resource(path, "", parts[1], parts[2:])
    if len(parts) >= 4 and parts[0] == "apis":
        return _resource(path, parts[1], parts[2], parts[3:])
    return Target(path)


_kept = lru_cache(maxsize=4096)(_understood)


def _resource(path: str, group: str, version: str, parts: list[str]) -> Target:
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
    return Target(
        path,
        True,
        group,
        version,
        plural,
        namespace,
        name,
        subresource,
        "/".join(rest),
        in_namespace,
        is_old_watch,
    )
