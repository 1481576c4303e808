"""Addresses put together without parsing are the ones that parsing would give."""

from __future__ import annotations

import pytest
from yarl import URL

from shoal.client.http.address import Address

CASES: list[tuple[str, str, str, dict[str, str], str]] = [
    ("plain", "https://h:6443", "/api/v1/pods", {}, "https://h:6443/api/v1/pods"),
    ("below a path", "https://h/k8s/one", "/api", {}, "https://h/k8s/one/api"),
    ("a query", "http://h", "/p", {"limit": "5", "continue": "a+b/c="}, "http://h/p?limit=5&continue=a%2Bb%2Fc%3D"),
    ("labels", "http://h", "/p", {"labelSelector": "a in (b,c)"}, "http://h/p?labelSelector=a+in+%28b%2Cc%29"),
    ("a role with a colon", "http://h", "/roles/system:node", {}, "http://h/roles/system:node"),
    ("a name with signs", "http://h", "/roles/a b?#é", {}, "http://h/roles/a%20b%3F%23%C3%A9"),
    ("an address of six", "https://[::1]:6443", "/api", {}, "https://[::1]:6443/api"),
]


@pytest.mark.parametrize(
    ("server", "path", "query", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_an_address_is(server: str, path: str, query: dict[str, str], expected: str) -> None:
    found = Address(server).of(path, query)
    assert str(found) == expected
    assert dict(URL(expected, encoded=True).query) == query
    assert (found.host, found.port) == (URL(expected).host, URL(expected).port)


def test_queries_that_differ_each_time_are_not_kept_for_ever() -> None:
    address = Address("http://h")
    for number in range(1000):
        assert str(address.of("/p", {"resourceVersion": str(number)})) == f"http://h/p?resourceVersion={number}"
    assert len(address._bases) <= 64
