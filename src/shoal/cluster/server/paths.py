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
    is_old_watch: bool = False
    """The deprecated form with `/watch/` in the path."""


_OF_NAMESPACES = ("status", "finalize")


_KEPT_LETTERS = 300
"""Longer paths are understood each time: made-up ones would fill the memory."""


def target_of(path: str) -> Target:
    return _kept(path) if len(path) <= _KEPT_LETTERS else _understood(path)


def _understood(path: str) -> Target:
    parts = [part for part in path.split("/") if part]
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
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _OF_NAMESPACES:
            parts = parts[2:]
    plural, name, subresource, *rest = [*parts, "", "", ""][: max(3, len(parts))]
    return Target(
        path,
        True,
        group,
        version,
        plural,
        namespace,
        name,
        subresource,
        "/".join(one for one in rest if one),
        is_old_watch,
    )
