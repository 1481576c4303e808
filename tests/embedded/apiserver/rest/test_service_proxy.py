"""`services/NAME/proxy`: refused as a real API server refuses it, and as pods are where there is an endpoint."""

from __future__ import annotations

from typing import Any

import pytest

from build.readers import FixedReader
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.streams.service_proxy import check_service

NONE = 'no endpoints available for service "web"'
SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "a"},
    "spec": {"ports": [{"name": "http", "port": 80}, {"name": "other", "port": 90}]},
}


def endpoints(*ports: str, is_ready: bool = True) -> dict[str, Any]:
    address = {"ip": "198.18.64.1", "targetRef": {"kind": "Pod", "name": "web-0", "namespace": "a"}}
    subset = {"addresses" if is_ready else "notReadyAddresses": [address], "ports": [{"name": one} for one in ports]}
    metadata = {"name": "web", "namespace": "a"}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset] if ports else []}


def refused(asked: str, *more: dict[str, Any]) -> tuple[int, str]:
    with pytest.raises(ApiError) as refusal:
        check_service(FixedReader(SERVICE, *more), "a", asked)
    return refusal.value.code, refusal.value.message


@pytest.mark.parametrize(
    "asked", ["web", "web:http", "https:web:http", "web:80", ":web:", "web:nonesuch", "web:" + "9" * 5000]
)
def test_a_service_without_endpoints_is_unavailable(asked: str) -> None:
    assert refused(asked, endpoints()) == (503, NONE)


def test_an_endpoint_that_is_not_ready_or_has_not_the_port_does_not_count() -> None:
    assert refused("web", endpoints("http")) == (503, NONE)
    assert refused("web:http", endpoints("http", is_ready=False)) == (503, NONE.replace("web", "web:http"))
    assert refused("web:90", endpoints("http")) == (503, NONE.replace("web", "web:90"))


@pytest.mark.parametrize("asked", ["ftp:web:http", "a:b:c:d", ":", "http::80"])
def test_a_name_of_another_form_is_a_bad_request(asked: str) -> None:
    assert refused(asked) == (400, f'invalid service request "{asked}"')


def test_a_service_or_port_that_is_not_there_is_named() -> None:
    assert refused("nonesuch") == refused("nonesuch:80") == (404, 'services "nonesuch" not found')
    assert refused("web:81") == (503, 'no service port 81 found for service "web"')


@pytest.mark.parametrize(("asked", "port"), [("web", ""), ("web:http", "http"), ("http:web:80", "http")])
def test_an_endpoint_that_is_ready_is_found(asked: str, port: str) -> None:
    check_service(FixedReader(SERVICE, endpoints("other", port)), "a", asked)
    assert refused(asked, endpoints("other"))[0] == 503
