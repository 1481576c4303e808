"""Implements the port of clouds with EC2, by the official SDK of Python.

A node class is a launch template of this name: image, security groups, disks, the instance profile and the user data
with which a node joins the cluster. Subnets are those with the tag `karpenter.sh/discovery: CLUSTER`. All instances of
a request are granted together, because EC2 gets their number as the least and the most. The SDK blocks, so each call
runs in a thread.

Offerings are those that EC2 lists for the zones of the subnets; on-demand prices are those of Shoal's table, spot
prices the present ones. Rejected: aiobotocore, which pins old versions of the SDK (docs/dependencies.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from msgspec.structs import replace

from shoal.autoscale.nodes.gpu_instances import types_for_pool
from shoal.autoscale.nodes.instance_types import ON_DEMAND, SPOT, InstanceType, Offering
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.requirements.labels import ZONE_LABEL
from shoal.client.clock import Clock
from shoal.cloud.ec2_notices import NoticeQueue
from shoal.cloud.ec2_settings import Ec2Settings
from shoal.cloud.port import (
    CLUSTER_TAG,
    LAUNCH_LIMIT_S,
    CloudInstance,
    InstanceRequest,
    InstanceState,
    NoCapacityError,
    ThrottledError,
)
from shoal.units.errors import ShoalError, TemporaryError, UserError

_NO_CAPACITY: Final = frozenset(
    {
        "InsufficientInstanceCapacity",
        "InsufficientFreeAddressesInSubnet",
        "InsufficientHostCapacity",
        "InsufficientReservedInstanceCapacity",
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "SpotMaxPriceTooLow",
        "Unsupported",
        "UnfulfillableCapacity",
        "VcpuLimitExceeded",
    }
)
_THROTTLED: Final = frozenset(
    {
        "EC2ThrottledException",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "RequestThrottled",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_REPEATED: Final = "IdempotentParameterMismatch"
_GONE: Final = "InvalidInstanceID.NotFound"
_DENIED: Final = frozenset({"UnauthorizedOperation", "AuthFailure", "InvalidClientTokenId"})
_RETRY_S, _SLOWER_S = 2.0, 5.0
_OFFERED_S, _PRICES_S = 12 * 3600.0, 300.0
_STATES: Final[Mapping[str, InstanceState]] = {"pending": "pending", "running": "running", "stopping": "stopping"}
"""One that shuts down is not paid any more: it counts as gone."""
_DISCOVERY: Final = "karpenter.sh/discovery"
_BOOT_S: Final = 300.0


class Ec2Cloud:
    def __init__(self, client: Any, clock: Clock, settings: Ec2Settings, queue_client: Any = None) -> None:
        """`client`: the EC2 client of boto3; `queue_client`: its SQS client, if a queue with notices is named."""
        self.name = "ec2"
        self.launch_limit_s = LAUNCH_LIMIT_S
        self._client = client
        self._clock = clock
        self._cluster = settings.cluster
        self._notices = (
            None if queue_client is None else NoticeQueue(queue_client, settings.interruption_queue, clock, self._call)
        )
        self._subnets: dict[str, str] = {}
        """A subnet of each zone."""
        self._subnets_s = self._prices_s = float("-inf")
        self._offered: dict[str, frozenset[str]] = {}
        """The zones of each type."""
        self._spot: dict[tuple[str, str], float] = {}
        """By type and zone."""

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        subnets = await self._zones()
        wanted = pool.requirements.get(ZONE_LABEL)
        zones = tuple(zone for zone in sorted(subnets) if wanted.has(zone))
        types = [one for one in types_for_pool(replace(pool, node_class="EC2NodeClass"), zones) if zones]
        await self._look_at_prices([one.name for one in types])
        offered = (self._offered_type(one) for one in types)
        return tuple(one for one in offered if one.offerings)

    async def create(self, request: InstanceRequest) -> tuple[CloudInstance, ...]:
        subnet = (await self._zones()).get(request.zone)
        if subnet is None:
            raise NoCapacityError(f"no subnet of zone {request.zone} has the tag {_DISCOVERY}: {self._cluster}")
        tags = {**request.tags, CLUSTER_TAG: self._cluster, "Name": f"{self._cluster}-{request.token}"}
        listed = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
        asked: dict[str, Any] = {
            # A token of EC2 has at most 64 characters.
            "ClientToken": sha256(f"{self._cluster}/{request.token}".encode()).hexdigest(),
            "InstanceType": request.instance_type,
            "MinCount": request.count,
            "MaxCount": request.count,
            "SubnetId": subnet,
            "TagSpecifications": [{"ResourceType": kind, "Tags": listed} for kind in ("instance", "volume")],
        }
        if request.node_class:
            asked["LaunchTemplate"] = {"LaunchTemplateName": request.node_class}
        if request.capacity_type == SPOT:
            asked["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "one-time"}}
        try:
            found = await self._call(self._client.run_instances, **asked)
        except UserError as error:
            if _code(error.__cause__) != _REPEATED:
                raise
            # It was carried out, and would have another subnet now.
            return await self._listed({CLUSTER_TAG: self._cluster, "Name": tags["Name"]})
        return tuple(made for raw in found["Instances"] if (made := _instance(raw, tags)) is not None)

    async def instances(self) -> tuple[CloudInstance, ...]:
        found = await self._listed({CLUSTER_TAG: self._cluster})
        if self._notices is None:
            return found
        # Only here: a notice about an instance that is not listed is taken for one of another cluster.
        ends = await self._notices.interrupted({each.id for each in found})
        return tuple(replace(each, interrupted_s=ends.get(each.id)) for each in found)

    async def _listed(self, tags: Mapping[str, str]) -> tuple[CloudInstance, ...]:
        filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
        pages = await self._pages("describe_instances", Filters=filters)
        raw = [each for page in pages for reservation in page["Reservations"] for each in reservation["Instances"]]
        return tuple(sorted((made for each in raw if (made := _instance(each)) is not None), key=lambda each: each.id))

    async def delete(self, ids: Sequence[str]) -> None:
        """Those that are gone, or belong to another cluster, are left out."""
        own = [each.id for each in await self.instances() if each.id in ids]
        try:
            await self._terminate(own)
        except UserError as error:
            if _code(error.__cause__) != _GONE:
                raise
            # EC2 then ends none of them.
            there = {each.id for each in await self.instances()}
            await self._terminate([each for each in own if each in there])

    async def _terminate(self, ids: Sequence[str]) -> None:
        if ids:
            await self._call(self._client.terminate_instances, InstanceIds=list(ids))

    def boot_s(self, _instance_type: str, /) -> float:
        return _BOOT_S

    # -- what is offered ----------------------------------------------------------------------------------------------

    async def _zones(self) -> dict[str, str]:
        """A subnet of each zone; read again now and then, because subnets are added later."""
        if self._clock.seconds() - self._subnets_s >= _PRICES_S:
            filters = [{"Name": f"tag:{_DISCOVERY}", "Values": [self._cluster]}]
            pages = await self._pages("describe_subnets", Filters=filters)
            subnets = sorted(
                (each for page in pages for each in page["Subnets"]), key=lambda each: str(each["SubnetId"])
            )
            # The one with most free addresses.
            subnets.sort(key=lambda each: int(each.get("AvailableIpAddressCount") or 0))
            self._subnets = {str(each["AvailabilityZone"]): str(each["SubnetId"]) for each in subnets}
            self._subnets_s = self._clock.seconds()
        return self._subnets

    async def _look_at_prices(self, names: Sequence[str]) -> None:
        now_s = self._clock.seconds()
        missing = [name for name in names if name not in self._offered]
        if missing:
            pages = await self._pages(
                "describe_instance_type_offerings",
                LocationType="availability-zone",
                Filters=[{"Name": "instance-type", "Values": missing}],
            )
            zones: dict[str, set[str]] = {name: set() for name in missing}
            for each in (each for page in pages for each in page["InstanceTypeOfferings"]):
                zones.setdefault(str(each["InstanceType"]), set()).add(str(each["Location"]))
            self._offered |= {name: frozenset(found) for name, found in zones.items()}
        if names and now_s - self._prices_s >= _PRICES_S:
            self._prices_s = now_s
            pages = await self._pages(
                "describe_spot_price_history",
                InstanceTypes=list(names),
                ProductDescriptions=["Linux/UNIX"],
                StartTime=self._clock.now(),
            )
            self._spot = {
                (str(each["InstanceType"]), str(each["AvailabilityZone"])): float(each["SpotPrice"])
                for page in pages
                for each in page["SpotPriceHistory"]
            }

    def _offered_type(self, one: InstanceType) -> InstanceType:
        zones = self._offered.get(one.name, frozenset())
        offerings = [each for each in one.offerings if each.zone in zones]
        return replace(one, offerings=tuple(self._priced(one.name, each) for each in offerings))

    def _priced(self, name: str, offering: Offering) -> Offering:
        price = self._spot.get((name, offering.zone)) if offering.capacity_type == SPOT else None
        return offering if price is None else replace(offering, price=price)

    # -- requests -----------------------------------------------------------------------------------------------------

    async def _pages(self, operation: str, **asked: Any) -> list[dict[str, Any]]:
        def read() -> list[dict[str, Any]]:
            return list(self._client.get_paginator(operation).paginate(**asked))

        found: list[dict[str, Any]] = await self._call(read)
        return found

    async def _call(self, call: Callable[..., Any], **asked: Any) -> Any:
        try:
            return await asyncio.to_thread(call, **asked)
        except ShoalError:
            raise
        except Exception as error:
            raise translated(error) from error


def translated(error: Exception) -> ShoalError:
    """The SDK's error as one of ours. An answer that is missing is temporary: the request may have been carried out."""
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    code = _code(error)
    words = str((response.get("Error") or {}).get("Message") or error)
    if code in _NO_CAPACITY:
        return NoCapacityError(f"{code}: {words}")
    if code in _THROTTLED:
        return ThrottledError(f"{code}: {words}", _SLOWER_S)
    if code in _DENIED:
        return UserError(f"{code}: {words}", fix="`shoal scale iam` prints the policy that is needed")
    status = int((response.get("ResponseMetadata") or {}).get("HTTPStatusCode") or 0)
    if code and 400 <= status < 500:
        return UserError(f"EC2 refused the request: {code}: {words}")
    return TemporaryError(f"EC2 did not answer: {words}", _RETRY_S)


def _code(error: BaseException | None) -> str:
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    return str((response.get("Error") or {}).get("Code") or "")


def _instance(raw: Mapping[str, Any], tags: Mapping[str, str] | None = None) -> CloudInstance | None:
    state = _STATES.get(str((raw.get("State") or {}).get("Name")))
    if state is None:
        return None
    zone = str((raw.get("Placement") or {}).get("AvailabilityZone") or "")
    listed = {str(each["Key"]): str(each["Value"]) for each in raw.get("Tags") or ()}
    return CloudInstance(
        id=str(raw["InstanceId"]),
        provider_id=f"aws:///{zone}/{raw['InstanceId']}",
        instance_type=str(raw["InstanceType"]),
        zone=zone,
        capacity_type=SPOT if raw.get("InstanceLifecycle") == "spot" else ON_DEMAND,
        state=state,
        created_s=raw["LaunchTime"].timestamp(),
        tags={**(tags or {}), **listed},
    )
