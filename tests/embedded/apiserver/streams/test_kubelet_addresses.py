"""Where a kubelet is dialed: where the node says, if that is on this machine."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.embedded.apiserver.streams.kubelet_address import kubelet_of

Obj = dict[str, Any]


def node(annotation: str = "", address: str = "", port: int = 0, kind: str = "InternalIP") -> Obj:
    status: Obj = {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
    if address:
        status["addresses"] = [{"type": "Hostname", "address": "n1"}, {"type": kind, "address": address}]
    annotations = {"shoal.dev/endpoint": annotation} if annotation else {}
    return {"metadata": {"name": "n1", "annotations": annotations}, "status": status}


@pytest.mark.parametrize(
    ("found", "authority"),
    [
        (node("https://127.0.0.1:10250"), "127.0.0.1:10250"),
        (node("https://localhost:1"), "127.0.0.1:1"),
        (node("https://[::1]:1"), "[::1]:1"),
        (node(address="127.0.0.1", port=10250), "127.0.0.1:10250"),
        (node(address="127.0.0.2", port=10250, kind="ExternalIP"), "127.0.0.2:10250"),
        (node("https://127.0.0.1:1", address="127.0.0.2", port=2), "127.0.0.1:1"),
    ],
)
def test_the_annotation_counts_first_and_then_the_status(found: Obj, authority: str) -> None:
    kubelet = kubelet_of(found)
    assert kubelet is not None
    assert (kubelet.node, kubelet.authority) == ("n1", authority)


@pytest.mark.parametrize(
    "found",
    [
        None,
        node(),
        node(address="127.0.0.1"),
        node(address="192.0.2.7", port=10250),
        node(address="127.0.0.1", port=10250, kind="Hostname"),
        node(address="not-an-address", port=10250),
        node("https://192.0.2.7:10250"),
        node("http://127.0.0.1:10250"),
        node("https://127.0.0.1:99999"),
        node("https://127.0.0.1:0"),
        node("https://kubelet.example.com:10250"),
        node("nonsense"),
    ],
)
def test_what_leads_nowhere_on_this_machine_is_no_kubelet(found: Obj | None) -> None:
    assert kubelet_of(found) is None
