"""Finds the verb of an HTTP request, and makes the call once its resource is known."""

from __future__ import annotations

from functools import lru_cache

import msgspec
from aiohttp import web

from shoal.embedded.apiserver.calls import Actor, Call, Verb
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.rest.options import LONGEST_MANAGER, WriteOptions
from shoal.embedded.apiserver.rest.selection import fields_asked_for, name_asked_for

_WRITES: dict[str, Verb] = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_FALSE = ("false", "0")
_SELECTED = ("list", "watch", "deletecollection")
_CONFINED = ("list", "watch")
"""What may be confined to one name by a field selector. As in Kubernetes, the deletion of a collection may not."""


def verb_of(request: web.BaseRequest, info: RequestInfo) -> Verb | None:
    """None for a method that no path of this form serves."""
    method = request.method
    if method == "GET" or (method == "HEAD" and not info.is_resource):
        if info.is_old_watch:
            return "watch"
        if info.name:
            # As in Kubernetes, `watch` says something about collections only.
            return "get"
        return "watch" if request.query.get("watch", "false").lower() not in _FALSE else "list"
    if info.is_old_watch:
        return None
    if method == "DELETE":
        return "delete" if info.name else "deletecollection"
    return _WRITES.get(method)


def with_verb(info: RequestInfo, verb: str, request: web.BaseRequest) -> RequestInfo:
    """The request as the authorizer is asked about it."""
    if not info.is_resource:
        return RequestInfo.of_path(request.method.lower(), info.path)
    name = info.name
    fields: tuple[tuple[str, str], ...] = ()
    if not name and verb in _SELECTED and "fieldSelector" in request.query:
        selector = request.query["fieldSelector"]
        name = name_asked_for(selector) if verb in _CONFINED else ""
        # As in Kubernetes, the deprecated form of a watch is not authorized by its selector.
        fields = () if info.is_old_watch else fields_asked_for(selector)
    # Without the path, which is another one for each object, decisions can be cached.
    return msgspec.structs.replace(info, verb=verb, name=name, fields=fields, path="")


def call_of(
    request: web.BaseRequest, info: RequestInfo, verb: Verb, resource: Resource, actor: Actor, options: WriteOptions
) -> Call:
    return Call(
        verb,
        resource,
        actor,
        info.namespace if resource.namespaced else "",
        info.name,
        info.subresource,
        options.manager or _first_word(request.headers.get("User-Agent", "")),
        options.dry_run,
        options.validation,
        bool(options.force),
    )


@lru_cache(maxsize=256)
def _first_word(agent: str) -> str:
    """The manager of fields, when the client does not name one: of the User-Agent the part before the version."""
    # Bytes that are no UTF-8 come as halves of pairs, which no answer could carry.
    word = agent.partition("/")[0].encode("utf-8", "replace").decode()
    printable = "".join(letter for letter in word if letter.isprintable())
    return printable.encode()[:LONGEST_MANAGER].decode(errors="ignore") or "unknown"
