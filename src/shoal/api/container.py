"""Containers as far as a scheduler reads them: what they request and which ports of the host they take."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from shoal.api.wire import ApiStruct, Quantities

# A port taken here is taken on every address of the host.
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - compared, never listened on

Port = Annotated[int, Meta(ge=0, le=65535)]


class ContainerClaim(ApiStruct, frozen=True):
    """One entry of the pod's `resourceClaims` that this container uses, or one request inside it."""

    name: str
    request: str = ""


class Resources(ApiStruct, frozen=True):
    requests: Quantities = field(default_factory=dict)
    limits: Quantities = field(default_factory=dict)
    claims: tuple[ContainerClaim, ...] = ()


class ContainerPort(ApiStruct, frozen=True):
    container_port: Port = 0
    host_port: Port = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    name: str = ""


class EnvVar(ApiStruct, frozen=True):
    """Read because some devices are asked for by environment variable; values from elsewhere stay empty."""

    name: str
    value: str = ""


class Container(ApiStruct, frozen=True):
    name: str = ""
    image: str = ""
    resources: Resources = field(default_factory=Resources)
    ports: tuple[ContainerPort, ...] = ()
    env: tuple[EnvVar, ...] = ()
    restart_policy: str = ""

    def is_sidecar(self) -> bool:
        """Among the init containers, one that keeps running beside the main ones."""
        return self.restart_policy == "Always"
