"""Resolves a Service to the local address at which its backend listens.

Pods have no network here, so a Service has an address only if one is given: the annotation
`shoal.dev/endpoint: https://127.0.0.1:9443` on the Service, or an EndpointSlice or Endpoints of it with an address of
this machine (Kubernetes takes no loopback address there, so mostly one of its network). Everything else is a Service
without endpoints, in Kubernetes' words. Rejected: dialing cluster addresses, which lead nowhere or, worse, somewhere.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from shoal.embedded.apiserver.reading import Obj, Reader

ANNOTATION = "shoal.dev/endpoint"
_SLICE_LABEL = "kubernetes.io/service-name"


class UnresolvedError(Exception):
    """A Service leads nowhere; the text says why."""


class WebhookEndpointAddress(msgspec.Struct, frozen=True):
    host: str
    port: int

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Endpoints:
    """Finds the addresses of Services in what is stored."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def service(self, namespace: str, name: str) -> Obj | None:
        return self._reader.get("", "services", namespace, name)

    def resolve(self, namespace: str, name: str, port: int) -> WebhookEndpointAddress:
        """Where the port of the Service is; UnresolvedError where there is no such place."""
        service = self.service(namespace, name)
        if service is None:
            raise UnresolvedError(f'service "{name}" not found')
        registered = registered_address(service)
        if registered is not None:
            return registered
        spec = service.get("spec") or {}
        found = next((one for one in spec.get("ports") or () if one.get("port") == port), None)
        if found is None:
            raise UnresolvedError(f'no service port {port} found for service "{name}"')
        for host, ports in self.places(namespace, name):
            if not is_own(host):
                continue
            number = next((one["port"] for one in ports if one.get("name", "") == found.get("name", "")), None)
            if number:
                return WebhookEndpointAddress(host, number)
        raise UnresolvedError(f'no endpoints available for service "{name}"')

    def places(self, namespace: str, name: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """The ready addresses behind a Service, each with its ports."""
        for one in self.slices(namespace, name):
            for endpoint in one.get("endpoints") or ():
                if (endpoint.get("conditions") or {}).get("ready", True) is not False:
                    for host in endpoint.get("addresses") or ():
                        yield host, one.get("ports") or []
        old = self._reader.get("", "endpoints", namespace, name) or {}
        for subset in old.get("subsets") or ():
            for address in subset.get("addresses") or ():
                yield address.get("ip", ""), subset.get("ports") or []

    def slices(self, namespace: str, name: str) -> Iterator[Obj]:
        for one in self._reader.all("discovery.k8s.io", "endpointslices", namespace):
            if (one["metadata"].get("labels") or {}).get(_SLICE_LABEL) == name:
                yield one

    def has_any(self, namespace: str, name: str) -> bool:
        """Whether there are endpoints at all, ready or not."""
        return any(True for _ in self.slices(namespace, name)) or bool(
            self._reader.get("", "endpoints", namespace, name)
        )


def registered_address(service: Obj) -> WebhookEndpointAddress | None:
    """The address that the annotation names; UnresolvedError where it is none on this machine."""
    text = (service["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not text:
        return None
    parts = urlsplit(text)
    try:
        port = parts.port or 443
    except ValueError:
        port = 0
    host = parts.hostname or ""
    if parts.scheme != "https" or not port or not _is_loopback(host):
        name = service["metadata"]["name"]
        raise UnresolvedError(
            f'service "{name}": the annotation {ANNOTATION} must be https://127.0.0.1:<port>, not {text}'
        )
    return WebhookEndpointAddress("127.0.0.1" if host == "localhost" else host, port)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=1024)
def is_own(host: str) -> bool:
    """Whether it is an address of this machine: one that can be listened on."""
    if _is_loopback(host):
        return True
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True
