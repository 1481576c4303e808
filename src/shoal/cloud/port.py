"""Defines what a cloud must do so that nodes can be provisioned: offer, create, list and delete instances.

Guarantees that every implementation gives, and that the contract suite checks:

- Two requests with one token create the instances of the first one, once. So a request whose response was lost, or
  whose sender was killed, is repeated without harm.
- A request for several instances creates all of them or none.
- An instance that was created is listed at once, with its tags, until it is gone.
- To delete an instance that is gone changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol

import msgspec

from shoal.api.taints import Taint
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.pools import NodePool
from shoal.units.errors import ShoalError, TemporaryError

CLUSTER_TAG: Final = "shoal.dev/cluster"
GROUP_TAG: Final = "shoal.dev/launch-group"
"""The token of the request that created the instance."""
POOL_TAG: Final = "karpenter.sh/nodepool"

ANY_ZONE: Final = "default"
"""Where a provider names no zone. It is not written to Nodes."""
LAUNCH_LIMIT_S: Final = 300.0
"""Where the cloud itself has no other."""

InstanceState = Literal["pending", "running", "stopping"]


class NoCapacityError(ShoalError):
    """The cloud has no machine of this offering at the moment: choose another offering."""


class ThrottledError(TemporaryError):
    """The cloud refused the request because there were too many: repeat it after `delay_s`."""


class InstanceRequest(msgspec.Struct, frozen=True):
    """Equal instances of one offering."""

    token: str
    """Equal tokens are one request."""
    instance_type: str
    zone: str
    capacity_type: str
    count: int = 1
    tags: Mapping[str, str] = {}
    node_labels: Mapping[str, str] = {}
    """With which the kubelets register."""
    taints: tuple[Taint, ...] = ()
    """With which the kubelets register."""
    node_class: str = ""
    """The name of the object that describes image, network and disks."""


class CloudInstance(msgspec.Struct, frozen=True):
    id: str
    provider_id: str
    """As its Node has it in `spec.providerID`; empty while it is not known."""
    instance_type: str
    zone: str
    capacity_type: str
    state: InstanceState
    created_s: float
    """Seconds since 1970."""
    tags: Mapping[str, str] = {}
    interrupted_s: float | None = None
    """When the cloud takes it back, once it has given notice."""


class Cloud(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def launch_limit_s(self) -> float:
        """How long a request may take until the provider ids of its instances are known."""
        ...

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        """What the pool may choose from, with the present prices."""
        ...

    async def create(self, request: InstanceRequest) -> tuple[CloudInstance, ...]:
        """The instances whose provider ids are known already: while some are missing, the caller repeats the request.
        Raises NoCapacityError, ThrottledError, or TemporaryError if the result is not known.
        """
        ...

    async def instances(self) -> tuple[CloudInstance, ...]:
        """All instances of this cluster, in the order of their ids."""
        ...

    async def delete(self, ids: Sequence[str]) -> None: ...

    def boot_s(self, instance_type: str, /) -> float:
        """How long an instance takes from its request to a node that takes pods, as far as that is known."""
        ...
