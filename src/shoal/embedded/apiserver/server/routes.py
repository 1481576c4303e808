"""Lists the paths and verbs of each resource; every other path is refused before anything is read or changed.

Authorization uses the group, resource, subresource, namespace and name that the path names. A path is served only if it
is the path of that object, so that what was authorized and what is acted on cannot differ: an object of the cluster has
no path below a namespace, and an object of a namespace has no path outside it.
"""

from __future__ import annotations

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import Verb
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.resource import Home, Resource

_NAMESPACES = Home("", "namespaces")
_ON_OBJECTS = frozenset({"get", "update", "patch", "delete"})


def check_route(info: RequestInfo, resource: Resource, verb: Verb) -> None:
    """Raises 404 for a path that the resource does not have, and 405 for a verb that is not served on it."""
    if not has_path(info, resource):
        raise status.no_such_path()
    if info.subresource:
        _check_subresource(info, resource, verb)
        return
    is_of_collection = verb in ("create", "deletecollection", "list")
    if verb not in resource.verbs or (verb != "watch" and is_of_collection == bool(info.name)):
        raise status.method_not_supported(resource.plural, resource.group)
    if resource.namespaced and not info.namespace and verb in ("create", "deletecollection"):
        raise status.method_not_supported(resource.plural, resource.group)


def has_path(info: RequestInfo, resource: Resource) -> bool:
    """Whether the path is one of the resource's scope."""
    if not info.subresource and info.rest:
        return False
    if info.name and not info.subresource and _ON_OBJECTS.isdisjoint(resource.verbs):
        return False
    if resource.namespaced:
        return bool(info.namespace) if info.in_namespace else not (info.name or info.subresource)
    return not info.in_namespace and (not info.namespace or resource.home == _NAMESPACES)


def _check_subresource(info: RequestInfo, resource: Resource, verb: Verb) -> None:
    found = resource.subresource(info.subresource)
    if not info.name or info.is_old_watch or (info.rest and (found is None or found.name != "proxy")):
        raise status.no_such_path()
    if found is None:
        raise (
            status.not_found(resource.plural, resource.group, info.name)
            if resource.is_custom
            else status.no_such_path()
        )
    if verb not in found.verbs:
        raise status.method_not_supported(resource.plural, resource.group)
