"""The API server as a Service of its own cluster: `kubernetes` in the namespace `default`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from shoal.embedded.apiserver.bootstrap.seed import Seed, seed

CLUSTER_ADDRESS = "10.96.0.1"
CLUSTER_RANGE = "10.96.0.0/12"
_NAME, _NAMESPACE, _PORT_NAME, _SERVICE_PORT = "kubernetes", "default", "https", 443


def own_service(host: str, port: int) -> Iterator[Seed]:
    """`host` and `port` are where the server listens; a later start on another port changes the endpoints."""
    labels = {"component": "apiserver", "provider": "kubernetes"}
    yield seed(
        ("v1", "Service", "services"),
        _NAME,
        _NAMESPACE,
        labels=labels,
        spec={
            "clusterIP": CLUSTER_ADDRESS,
            "clusterIPs": [CLUSTER_ADDRESS],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": _PORT_NAME, "port": _SERVICE_PORT, "protocol": "TCP", "targetPort": port}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
        status={"loadBalancer": {}},
    )
    yield from own_endpoints(host, port)
    yield from _address_range()


def own_endpoints(host: str, port: int) -> Iterator[Seed]:
    address = _address(host)
    ports: list[dict[str, Any]] = [{"name": _PORT_NAME, "port": port, "protocol": "TCP"}]
    yield seed(
        ("v1", "Endpoints", "endpoints"),
        _NAME,
        _NAMESPACE,
        labels={"endpointslice.kubernetes.io/skip-mirror": "true"},
        subsets=[{"addresses": [{"ip": address}], "ports": ports}],
    )
    yield seed(
        ("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
        _NAME,
        _NAMESPACE,
        labels={"kubernetes.io/service-name": _NAME},
        addressType=f"IPv{ipaddress.ip_address(address).version}",
        endpoints=[{"addresses": [address], "conditions": {"ready": True}}],
        ports=ports,
    )


def _address_range() -> Iterator[Seed]:
    ready = {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes Service CIDR is ready"}
    yield seed(
        ("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs"),
        _NAME,
        spec={"cidrs": [CLUSTER_RANGE]},
        status={"conditions": [ready]},
    )
    parent = {"group": "", "name": _NAME, "namespace": _NAMESPACE, "resource": "services"}
    labels = {"ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}
    yield seed(
        ("networking.k8s.io/v1", "IPAddress", "ipaddresses"),
        CLUSTER_ADDRESS,
        labels=labels,
        spec={"parentRef": parent},
    )


def _address(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return "127.0.0.1"
