"""`services/NAME/proxy`: which endpoint a request means, with the refusals of a real API server.

An endpoint that is found is a simulated pod, which runs no process: then the answer is that of `pods/NAME/proxy`.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.status import bad_request, not_found, unavailable
from shoal.units.numbers import whole_of

Obj = dict[str, Any]
_SCHEMES = ("", "http", "https")


def check_service(reader: Reader, namespace: str, asked: str) -> None:
    """`asked` is NAME, NAME:PORT or SCHEME:NAME:PORT. Raises what there is to refuse before anything is sent."""
    parts = asked.split(":")
    scheme, name, port = {1: ("", parts[0], ""), 2: ("", *parts), 3: tuple(parts)}.get(len(parts), ("", "", ""))
    if not name or scheme not in _SCHEMES:
        raise bad_request(f'invalid service request "{asked}"')
    number = whole_of(port)
    if number is not None:
        port = _named(reader, namespace, name, number)
    endpoints = reader.get("", "endpoints", namespace, name)
    if endpoints is None:
        raise not_found("services", "", name)
    subsets = endpoints.get("subsets") or ()
    if not any(_fits(one, port) for one in subsets):
        # Kubernetes names the service, or all that was asked for once it has looked at ports.
        raise unavailable(f'no endpoints available for service "{asked if subsets else name}"')


def _named(reader: Reader, namespace: str, name: str, number: int) -> str:
    service = reader.get("", "services", namespace, name)
    if service is None:
        raise not_found("services", "", name)
    for one in service["spec"].get("ports") or ():
        if one["port"] == number:
            return str(one.get("name", ""))
    raise unavailable(f'no service port {number} found for service "{name}"')


def _fits(subset: Obj, port: str) -> bool:
    is_there = any((each.get("name") or "") == port for each in subset.get("ports") or ())
    return is_there and any(one.get("targetRef") for one in subset.get("addresses") or ())
