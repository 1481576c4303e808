"""Whom the endpoint believes is what the API server wrote down."""

from __future__ import annotations

import pytest

from shoal.embedded.kubelets.endpoint.api_server_trust import trusting
from shoal.embedded.kubelets.endpoint.endpoint import EndpointSettings

BEFORE = EndpointSettings(kubelet_port=1, client_ca="kept")


def test_authorities_and_names_come_from_the_config_map() -> None:
    data = {
        "client-ca-file": "users",
        "requestheader-client-ca-file": "proxies",
        "requestheader-allowed-names": '["a","b"]',
    }
    found = trusting(BEFORE, {"data": data})
    assert (found.client_ca, found.proxy_ca, found.proxy_names) == ("users", "proxies", ("a", "b"))
    assert found.kubelet_port == 1


@pytest.mark.parametrize("config_map", [None, {}, {"data": {"requestheader-allowed-names": "[1"}}])
def test_what_is_not_told_stays_as_it_was(config_map: dict[str, dict[str, str]] | None) -> None:
    assert trusting(BEFORE, config_map) == BEFORE
