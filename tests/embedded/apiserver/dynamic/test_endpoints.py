"""Where Services lead: what is registered, what slices say, and the words for everything else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shoal.embedded.apiserver.dynamic.endpoints import Endpoints, UnresolvedError, WebhookEndpointAddress

Obj = dict[str, Any]
ELSEWHERE = "203.0.113.9"
"""An address of documentation: no machine has it."""


class Stored:
    """Objects as a reader gives them."""

    def __init__(self, **objects: Obj) -> None:
        self._objects = objects

    def get(self, group: str, plural: str, namespace: str, name: str) -> Obj | None:
        found = self._objects.get(plural)
        return found if found is not None and found["metadata"]["name"] == name else None

    def all(self, group: str, plural: str, namespace: str | None = None) -> Iterator[Obj]:
        if plural in self._objects:
            yield self._objects[plural]

    def stamp(self, group: str, plural: str) -> int:
        return 1


def service(endpoint: str = "", *ports: Obj) -> Obj:
    annotations = {"annotations": {"shoal.dev/endpoint": endpoint}} if endpoint else {}
    return {"metadata": {"name": "hooks", **annotations}, "spec": {"ports": list(ports) or [{"port": 443}]}}


def slice_of(*addresses: str, port: int = 9443, name: str = "", **conditions: bool) -> Obj:
    endpoint = {"addresses": list(addresses), "conditions": conditions}
    metadata = {"name": "hooks-1", "labels": {"kubernetes.io/service-name": "hooks"}}
    return {"metadata": metadata, "endpoints": [endpoint], "ports": [{"name": name, "port": port}]}


def resolved(port: int = 443, **objects: Obj) -> WebhookEndpointAddress:
    return Endpoints(Stored(**objects)).resolve("default", "hooks", port)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("https://127.0.0.1:9443", "127.0.0.1", 9443),
        ("https://localhost:8443", "127.0.0.1", 8443),
        ("https://[::1]:9443", "::1", 9443),
        ("https://127.0.0.1", "127.0.0.1", 443),
    ],
)
def test_the_annotation_says_where_a_service_is(text: str, host: str, port: int) -> None:
    assert resolved(services=service(text)) == WebhookEndpointAddress(host, port)


@pytest.mark.parametrize(
    "text", ["http://127.0.0.1:80", f"https://{ELSEWHERE}:443", "127.0.0.1:9443", "https://127.0.0.1:x"]
)
def test_an_annotation_that_leads_away_is_refused(text: str) -> None:
    with pytest.raises(
        UnresolvedError, match=r"the annotation shoal\.dev/endpoint must be https://127\.0\.0\.1:<port>"
    ):
        resolved(services=service(text))


def test_a_slice_gives_the_address_of_the_port_by_its_name() -> None:
    ports = ({"name": "metrics", "port": 80}, {"name": "web", "port": 443})
    found = resolved(services=service("", *ports), endpointslices=slice_of("127.0.0.1", name="web", port=7443))
    assert found == WebhookEndpointAddress("127.0.0.1", 7443)


def test_old_endpoints_count_as_well() -> None:
    subset = {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": 6443}]}
    old = {"metadata": {"name": "hooks"}, "subsets": [subset]}
    assert resolved(services=service(), endpoints=old) == WebhookEndpointAddress("127.0.0.1", 6443)


@pytest.mark.parametrize(
    ("objects", "port", "words"),
    [
        ({}, 443, 'service "hooks" not found'),
        ({"services": service()}, 8443, 'no service port 8443 found for service "hooks"'),
        ({"services": service()}, 443, 'no endpoints available for service "hooks"'),
        ({"services": service(), "endpointslices": slice_of(ELSEWHERE)}, 443, "no endpoints available"),
        ({"services": service(), "endpointslices": slice_of("127.0.0.1", ready=False)}, 443, "no endpoints available"),
        ({"services": service(), "endpointslices": slice_of("127.0.0.1", name="other")}, 443, "no endpoints available"),
    ],
)
def test_whatever_leads_nowhere_says_so(objects: dict[str, Obj], port: int, words: str) -> None:
    with pytest.raises(UnresolvedError, match=words):
        resolved(port, **objects)
