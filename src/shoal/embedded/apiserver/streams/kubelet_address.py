"""Resolves the address of a node's kubelet on this machine.

A simulated kubelet says it in the node's annotation `shoal.dev/endpoint: https://127.0.0.1:10250`, so that the node's
addresses may be those of the machine it pretends to be; or, as every kubelet does, in the node's status. Only addresses
of this machine count. Rejected: dialing whatever a Node says. Manifests of nodes are copied from clusters, and their
addresses lead nowhere from here or, worse, somewhere.
"""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

import msgspec

from shoal.embedded.apiserver.dynamic.endpoints import ANNOTATION, is_own

Obj = dict[str, Any]
_PREFERRED = ("InternalIP", "ExternalIP")


class Kubelet(msgspec.Struct, frozen=True):
    node: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def kubelet_of(node: Obj | None) -> Kubelet | None:
    """None for a node that tells of no kubelet that could be reached."""
    if node is None:
        return None
    host, port = _announced(node) or _of_status(node) or ("", 0)
    return Kubelet(node["metadata"]["name"], host, port) if host and 0 < port < 65536 else None


def _announced(node: Obj) -> tuple[str, int] | None:
    text = (node["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not text:
        return None
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", 443 if parts.port is None else parts.port
    except ValueError:
        return None
    host = "127.0.0.1" if host == "localhost" else host
    return (host, port) if parts.scheme == "https" and _is_own(host) else None


def _of_status(node: Obj) -> tuple[str, int] | None:
    status = node.get("status") or {}
    port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port") or 0
    for type_ in _PREFERRED:
        for one in status.get("addresses") or ():
            if port and one.get("type") == type_ and _is_own(one.get("address", "")):
                return one["address"], port
    return None


def _is_own(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return is_own(host)
