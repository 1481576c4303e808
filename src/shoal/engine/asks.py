"""Represents what a pod requests, without its identity: pods with equal requests share every computation.

An `Ask` is a value. Two pods of one Deployment, or ten thousand clones of a training worker, have equal asks, and
the engine keeps keys per ask, not per pod. Everything that can change a placement must therefore be in here, and
nothing else (no name, no uid), or sharing would either lie or stop.
"""

from __future__ import annotations

import msgspec

from shoal.api.node_affinity import NodeRule, PreferredSchedulingTerm
from shoal.api.taints import Toleration
from shoal.data.mig import RESOURCE_PREFIX
from shoal.engine.device_demand import Demand, MigTiles, demand_milli, demand_per_device
from shoal.engine.dra.requests import ClaimRef
from shoal.engine.pod_rules import NO_RULES, PodRules

_EVERY_ADDRESS = ("", "0.0.0.0")  # noqa: S104 - compared, not listened on


class HostPort(msgspec.Struct, frozen=True, order=True):
    """A port of the node itself; `ip` empty means every address."""

    port: int
    protocol: str = "TCP"
    ip: str = ""

    def conflicts(self, other: HostPort) -> bool:
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.ip == other.ip or self.ip in _EVERY_ADDRESS or other.ip in _EVERY_ADDRESS


class Ask(msgspec.Struct, frozen=True, cache_hash=True):
    """Resources, devices and conditions under which a pod runs."""

    requests: tuple[tuple[str, int], ...] = ()
    """Sorted (resource, amount), GPUs excluded; cpu in thousandths of a core, the rest in base units."""
    devices: Demand | None = None
    gpu_models: frozenset[str] = frozenset()
    """GPU models that will do; empty means any."""
    nodes: NodeRule = NodeRule()
    """nodeSelector and required node affinity."""
    preferred: tuple[PreferredSchedulingTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    node_name: str = ""
    near: PodRules = NO_RULES
    """Rules about other pods: affinity, anti-affinity, spread."""
    claims: tuple[ClaimRef, ...] = ()
    """Claims on devices of dynamic resource allocation."""
    profile: str = ""
    """By what is preferred among the nodes that fit, where a placement has several profiles; empty is its first."""

    def request(self, resource: str) -> int:
        for name, amount in self.requests:
            if name == resource:
                return amount
        return 0

    @property
    def asks_devices(self) -> bool:
        """Whether it asks for devices in any way."""
        return self.devices is not None or bool(self.claims)

    @property
    def gpu_milli(self) -> int:
        """GPU compute asked for in all, in thousandths."""
        return demand_milli(self.devices)


def counted(ask: Ask) -> dict[str, int]:
    """What the ask takes by name: its requests, and its MIG instances also where only the demand names them."""
    amounts = dict(ask.requests)
    if isinstance(ask.devices, MigTiles):
        amounts.update((RESOURCE_PREFIX + profile, count) for profile, count in ask.devices.tiles)
    return amounts


def gpu_pair(ask: Ask) -> tuple[int, int]:
    """(devices, thousandths on each) of an ask."""
    return demand_per_device(ask.devices)
