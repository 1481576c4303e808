"""Which paths and verbs a resource is served on; every other path is refused before anything is read or changed.

Authorization uses the group, resource, subresource, namespace and name that the path names. A path is served only if it
is the path of that object, so that what was authorized and what is acted on cannot differ: an object of the cluster has
no path below a namespace, and an object of a namespace has no path outside it.
"""

from __future__ import annotations

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import Verb
from shoal.embedded.apiserver.paths import Target
from shoal.embedded.apiserver.resource import Home, Resource

_NAMESPACES = Home("", "namespaces")
_ON_OBJECTS = frozenset({"get", "update", "patch", "delete"})


def check_route(target: Target, resource: Resource, verb: Verb) -> None:
    """Raises 404 for a path that the resource does not have, and 405 for a verb that is not served on it."""
    if not has_path(target, resource):
        raise status.no_such_path()
    if target.subresource:
        _check_subresource(target, resource, verb)
        return
    is_of_collection = verb in ("create", "deletecollection", "list")
    if verb not in resource.verbs or (verb != "watch" and is_of_collection == bool(target.name)):
        raise status.method_not_supported(resource.plural, resource.group)
    if resource.namespaced and not target.namespace and verb in ("create", "deletecollection"):
        raise status.method_not_supported(resource.plural, resource.group)


def has_path(target: Target, resource: Resource) -> bool:
    """Whether the path is one of the resource's scope."""
    if not target.subresource and target.rest:
        return False
    if target.name and not target.subresource and _ON_OBJECTS.isdisjoint(resource.verbs):
        return False
    if resource.namespaced:
        return bool(target.namespace) if target.in_namespace else not (target.name or target.subresource)
    return not target.in_namespace and (not target.namespace or resource.home == _NAMESPACES)


def _check_subresource(target: Target, resource: Resource, verb: Verb) -> None:
    found = resource.subresource(target.subresource)
    if not target.name or target.is_old_watch or (target.rest and (found is None or found.name != "proxy")):
        raise status.no_such_path()
    if found is None:
        raise (
            status.not_found(resource.plural, resource.group, target.name)
            if resource.is_custom
            else status.no_such_path()
        )
    if verb not in found.verbs:
        raise status.method_not_supported(resource.plural, resource.group)
