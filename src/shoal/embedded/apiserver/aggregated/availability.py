"""Checks whether the server behind an APIService is reachable, with Kubernetes' condition reasons."""

from __future__ import annotations

from typing import Any, NamedTuple

from shoal.embedded.apiserver.aggregated.server import Server, Servers
from shoal.embedded.apiserver.dynamic.endpoints import ANNOTATION, Endpoints

Obj = dict[str, Any]


class Judgement(NamedTuple):
    status: str
    reason: str
    message: str


PASSED = Judgement("True", "Passed", "all checks passed")


async def judged(server: Server, servers: Servers) -> Judgement:
    """What to write into the condition Available."""
    found = _of_service(server, servers.endpoints)
    if found is not None:
        return found
    fault = await servers.fault(server)
    return Judgement("False", "FailedDiscoveryCheck", fault) if fault else PASSED


def _of_service(server: Server, endpoints: Endpoints) -> Judgement | None:
    """What is wrong with the Service already; None if it leads somewhere."""
    service = endpoints.service(server.namespace, server.service)
    shown = f'service/{server.service} in "{server.namespace}"'
    if service is None:
        return Judgement("False", "ServiceNotFound", f"{shown} is not present")
    spec: Obj = service.get("spec") or {}
    if (spec.get("type") or "ClusterIP") != "ClusterIP":
        return None
    port = next((one for one in spec.get("ports") or () if one.get("port") == server.port), None)
    if port is None:
        return Judgement("False", "ServicePortError", f"{shown} is not listening on port {server.port}")
    if (service["metadata"].get("annotations") or {}).get(ANNOTATION):
        return None
    if not endpoints.has_any(server.namespace, server.service):
        return Judgement("False", "EndpointsNotFound", f"cannot find endpointslices for {shown}")
    name = port.get("name", "")
    for _, ports in endpoints.places(server.namespace, server.service):
        if any(one.get("name", "") == name for one in ports):
            return None
    words = f'endpointslices for {shown} have no addresses with port name "{name}"'
    return Judgement("False", "MissingEndpoints", words)
