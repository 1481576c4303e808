"""Represents the requests of a claim with evaluated selectors: a set of devices and a number.

The set itself is a fact of its own (`DeviceSetSeen`), found under its name. Asks stay small and comparable that way,
and a device that joins the fleet changes one set and no ask. Rejected: the set inside the ask; with ten thousand
devices of a class every look-up of an ask would compare ten thousand names.
"""

from __future__ import annotations

import msgspec

from shoal.api.device_taints import DeviceToleration
from shoal.api.node_affinity import NodeSelector
from shoal.engine.dra.devices import Amounts

MOST_RESULTS = 32
"""Devices that one claim may be given."""


class Option(msgspec.Struct, frozen=True, cache_hash=True):
    """One way to serve a request."""

    matching: str
    """The name of the set of devices that will do; it is shown to people."""
    count: int | None = 1
    """None asks for every device of the set that the node can use, and for at least one."""
    name: str = ""
    """Of an alternative; a request with one way only has no name for it."""
    admin: bool = False
    """It looks at devices, in use or not, and takes nothing."""
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: Amounts = ()
    """What each device must have, or give of itself where it is shared."""
    device_class: str = ""
    """The name of the DeviceClass; queues count GPUs apart from other devices by it."""


class Request(msgspec.Struct, frozen=True, cache_hash=True):
    """What is asked for, best first."""

    name: str
    options: tuple[Option, ...]

    def label(self, option: Option) -> str:
        """What an allocation calls it."""
        return f"{self.name}/{option.name}" if option.name else self.name


class Constraint(msgspec.Struct, frozen=True, cache_hash=True):
    """The devices of these requests (of all, if none is named) agree in an attribute, or no two of them do."""

    attribute: str
    distinct: bool = False
    requests: frozenset[str] = frozenset()

    def covers(self, request: Request, option: Option) -> bool:
        return not self.requests or request.name in self.requests or request.label(option) in self.requests


class ClaimAsk(msgspec.Struct, frozen=True, cache_hash=True):
    """The content of a claim."""

    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...] = ()


class ClaimRef(msgspec.Struct, frozen=True, cache_hash=True):
    """A pod's use of a claim: one that exists under its own name, or one made for this pod from a template."""

    name: str
    """What the pod calls it."""
    shared: str = ""
    """namespace/name of the claim."""
    own: ClaimAsk | None = None
    """The request of the pod's own claim. It is part of the ask, so pods made from one template share a request
    class."""
    trouble: str = ""
    """Why there can be no such claim; the pod waits with this message."""


class Pick(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """One device given to one request."""

    request: str
    device: str
    share: Amounts = ()
    """What it takes of a shared device."""
    admin: bool = False


Picks = tuple[Pick, ...]


class ClaimGrant(msgspec.Struct, frozen=True, cache_hash=True):
    """What one claim of a pod was given."""

    name: str
    shared: str
    picks: Picks


class ClaimFacts(msgspec.Struct, frozen=True):
    """A claim that exists, and what its status says."""

    key: str
    """namespace/name."""
    ask: ClaimAsk
    allocation: Picks | None = None
    reach: NodeSelector | None = None
    """Where the allocation says that it can be used; without it the devices say so."""
    reserved: frozenset[str] = frozenset()
    """Pods (namespace/name) that may use it; names of nothing we know count just as well."""
    queue: str = ""
    """The queue that its label names."""
    trouble: str = ""
