"""A request as it is asked: verb, target, options; and the call that it becomes once its resource is known."""

from __future__ import annotations

from functools import lru_cache

from aiohttp import web

from shoal.cluster.calls import Actor, Attributes, Call, Verb
from shoal.cluster.resource import Resource
from shoal.cluster.rest.options import LONGEST_MANAGER, WriteOptions
from shoal.cluster.rest.selection import name_asked_for
from shoal.cluster.server.paths import Target

_WRITES: dict[str, Verb] = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_FALSE = ("false", "0")
_CONFINED = ("list", "watch", "deletecollection")
"""What may be confined to one name by a field selector."""


def verb_of(request: web.BaseRequest, target: Target) -> Verb | None:
    method = request.method
    if method in ("GET", "HEAD"):
        if target.is_old_watch or ("watch" in request.query and request.query["watch"].lower() not in _FALSE):
            # Kubernetes takes a watch of one name as a watch of the list with that name.
            return "watch" if not target.subresource else "get"
        return "get" if target.name else "list"
    if method == "DELETE":
        return "delete" if target.name else "deletecollection"
    return _WRITES.get(method)


def attributes_of(target: Target, verb: str, request: web.BaseRequest) -> Attributes:
    """What the authorizer is asked."""
    if not target.is_resource:
        return Attributes(request.method.lower(), path=target.path)
    name = target.name
    if not name and "fieldSelector" in request.query and verb in _CONFINED:
        name = name_asked_for(request.query["fieldSelector"])
    return Attributes(
        verb,
        target.group,
        target.version,
        target.plural,
        target.subresource,
        target.namespace,
        name,
    )


def call_of(
    request: web.BaseRequest, target: Target, verb: Verb, resource: Resource, actor: Actor, options: WriteOptions
) -> Call:
    return Call(
        verb,
        resource,
        actor,
        target.namespace if resource.namespaced else "",
        target.name,
        target.subresource,
        options.manager or _first_word(request.headers.get("User-Agent", "")),
        options.dry_run,
        options.validation,
        bool(options.force),
    )


@lru_cache(maxsize=256)
def _first_word(agent: str) -> str:
    """The manager of fields, when the client does not name one: of the User-Agent what stands before the version."""
    # Bytes that are no UTF-8 come as halves of pairs, which no answer could carry.
    word = agent.partition("/")[0].encode("utf-8", "replace").decode()
    printable = "".join(letter for letter in word if letter.isprintable())
    return printable.encode()[:LONGEST_MANAGER].decode(errors="ignore") or "unknown"
