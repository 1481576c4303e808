"""What is authorized is what is acted on: over every resource that is served, and over generated paths."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.in_process import InProcess, Reply, in_process
from shoal.embedded.apiserver.builtin import builtin_resources
from shoal.embedded.apiserver.calls import Verb
from shoal.embedded.apiserver.request_info import RequestInfo, parse_path
from shoal.embedded.apiserver.resource import Resource, Subresource
from shoal.embedded.apiserver.schema.kubernetes import published
from shoal.embedded.apiserver.server.routes import check_route
from shoal.embedded.apiserver.status import ApiError

VERBS: tuple[Verb, ...] = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
CUSTOM = (
    Resource(
        "x.io", "v1", "namespaces", "Namespace", True, is_custom=True, subresources=(Subresource("status", VERBS),)
    ),
    Resource("y.io", "v1", "namespaces", "Namespace", False, is_custom=True),
    Resource("x.io", "v1", "watch", "Watch", True, is_custom=True),
    Resource("x.io", "v1", "status", "Status", True, is_custom=True, subresources=(Subresource("scale", VERBS),)),
    Resource("x.io", "v1", "proxy", "Proxy", False, is_custom=True),
)
RESOURCES = (*builtin_resources(published("1.36"), {}), *CUSTOM)
_SEGMENTS = ("namespaces", "ta", "tb", "watch", "proxy", "status", "finalize", "", ".", "..", "%2e", "a/b", "Pods", "n")


def canonical(resource: Resource, target: RequestInfo) -> str:
    """The one path of an object, from the attributes that are authorized."""
    root = f"/apis/{target.group}/{target.version}" if target.group else f"/api/{target.version}"
    parts = ["namespaces", target.namespace] if resource.namespaced and target.namespace else []
    parts += [part for part in (target.resource, target.name, target.subresource) if part]
    return "/".join((root, *parts))


def accepted(target: RequestInfo, resource: Resource) -> bool:
    for verb in VERBS:
        try:
            check_route(target, resource, verb)
        except ApiError:
            continue
        return True
    return False


def generated(resource: Resource, draw: random.Random) -> Iterator[str]:
    """Paths of a resource: the good ones, and those with segments added, left out, exchanged or doubled."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    names = ["", *(one.name for one in resource.subresources), "finalize", "status", "nosuch"]
    for before in ([], ["namespaces", "ta"], ["watch"], ["watch", "namespaces", "ta"], ["namespaces", ""], ["proxy"]):
        yield "/".join((root, *before, resource.plural))
        for name in names:
            good = [*before, resource.plural, "tb", *([name] if name else [])]
            yield "/".join((root, *good))
            yield "/".join((root, *good)) + "/"
            for _ in range(6):
                odd = list(good)
                for _ in range(draw.randint(1, 2)):
                    place = draw.randrange(len(odd))
                    how = draw.random()
                    if how < 0.5:
                        odd.insert(place, draw.choice((*_SEGMENTS, resource.plural)))
                    elif how < 0.7 and len(odd) > 1:
                        del odd[place]
                    else:
                        odd[place] = draw.choice((*_SEGMENTS, odd[place].upper()))
                yield "/".join((root, *odd))


def test_a_path_that_is_served_is_the_path_of_the_object_that_is_authorized() -> None:
    draw = random.Random(7)
    table = {(one.group, one.version, one.plural): one for one in RESOURCES}
    served = 0
    for resource in RESOURCES:
        for path in generated(resource, draw):
            target = parse_path(path)
            found = table.get((target.group, target.version, target.resource))
            if not target.is_resource or found is None or not accepted(target, found):
                continue
            served += 1
            plain = path.rstrip("/").replace(
                f"/{target.version}/watch/", f"/{target.version}/", 1 if target.is_old_watch else 0
            )
            plain = plain.removesuffix(f"/{target.rest}") if target.rest else plain
            assert plain == canonical(found, target), path
            assert not target.rest or target.subresource == "proxy"
            if not found.namespaced:
                # A Namespace is authorized in itself, as Kubernetes does it; nothing else of the cluster is in one.
                assert target.namespace in ("", target.name)
    assert served > 1000


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/ta/namespaces/tb",
        "/api/v1/namespaces/ta/namespaces/ta",
        "/api/v1/namespaces/ta/namespaces",
        "/api/v1/namespaces/ta/namespaces/tb/status",
        "/api/v1/namespaces/ta/namespaces/tb/finalize",
        "/api/v1/watch/namespaces/ta/namespaces/tb",
        "/api/v1/namespaces/ta/nodes/n/status",
        "/api/v1/namespaces/ta/nodes/n/proxy/pods",
        "/api/v1/namespaces/ta/persistentvolumes/p/status",
        "/apis/certificates.k8s.io/v1/namespaces/ta/certificatesigningrequests/c/approval",
        "/api/v1/namespaces/ta/pods/p/status/more",
        "/api/v1/namespaces/ta/bindings/p",
        "/api/v1/pods/p/binding",
        "/api/v1/namespaces/ta/pods//exec",
        "/api/v1/watch/namespaces/ta/pods/p/log",
    ],
)
def test_no_verb_is_served_on_a_path_that_kubernetes_does_not_have(path: str) -> None:
    target = parse_path(path)
    found = next(one for one in RESOURCES if (one.group, one.plural) == (target.group, target.resource))
    for verb in VERBS:
        with pytest.raises(ApiError) as refused:
            check_route(target, found, verb)
        assert (refused.value.code, refused.value.message) == (404, "the server could not find the requested resource")


# -- the whole server, as it answers a user who holds everything in one namespace and nothing elsewhere ---------------

ALICE = {"Impersonate-User": "alice"}
MARK = "only-outside"


async def test_who_holds_everything_in_one_namespace_reads_and_changes_nothing_outside_it(tmp_path: Path) -> None:
    async with in_process(tmp_path, authorization="rbac") as door:
        await _furnish(door)
        before = _outside(door)
        for resource in list(door.plane.context.catalog.all()):
            for path in _intruding(resource):
                for method, body in _bodies(resource):
                    reply = await door.ask(method, path, body, headers=ALICE | _media(method))
                    _check(reply, method, path)
        assert _outside(door) == before
        assert door.told.lines == []


def _intruding(resource: Resource) -> Iterator[str]:
    """Paths below the user's own namespace that name an object elsewhere, and the object's own path."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    own = f"{root}/namespaces/ta"
    if resource.namespaced:
        yield f"{root}/namespaces/tb/{resource.plural}/tb"
        yield f"{own}/namespaces/tb/{resource.plural}/tb"
    else:
        yield f"{own}/{resource.plural}"
        yield f"{own}/{resource.plural}/tb"
        yield from (f"{own}/{resource.plural}/tb/{one.name}" for one in resource.subresources)
        yield f"{root}/{resource.plural}/tb"


def _bodies(resource: Resource) -> Iterator[tuple[str, Any]]:
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "tb", "labels": {"x": "y"}}}
    yield "GET", b""
    yield "POST", obj
    yield "PUT", obj
    yield "PATCH", {"metadata": {"labels": {"x": "y"}}}
    yield "DELETE", b""


def _media(method: str) -> dict[str, str]:
    return {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}


def _check(reply: Reply, method: str, path: str) -> None:
    assert reply.code in (403, 404, 405), f"{method} {path}: {reply.code} {reply.raw[:300]!r}"
    assert MARK.encode() not in reply.raw


async def _furnish(door: InProcess) -> None:
    for name in ("ta", "tb"):
        namespace = {"metadata": {"name": name, "labels": {"secret": MARK if name == "tb" else "no"}}}
        assert (await door.ask("POST", "/api/v1/namespaces", namespace)).code == 201
    node = {"metadata": {"name": "tb", "labels": {"secret": MARK}}}
    assert (await door.ask("POST", "/api/v1/nodes", node)).code == 201
    secret = {"metadata": {"name": "tb"}, "stringData": {"a": MARK}}
    assert (await door.ask("POST", "/api/v1/namespaces/tb/secrets", secret)).code == 201
    bound = {
        "metadata": {"name": "alice"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    }
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/ta/rolebindings"
    assert (await door.ask("POST", path, bound)).code == 201


def _outside(door: InProcess) -> dict[tuple[str, ...], bytes]:
    state = door.plane.context.state
    found: dict[tuple[str, ...], bytes] = {}
    for home in state.homes():
        for record in state.list(home, None).records:
            if record.ref.namespace != "ta":
                found[(*home, record.ref.namespace, record.ref.name)] = record.data
    return found
