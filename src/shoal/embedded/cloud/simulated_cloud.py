"""Implements the port of clouds: offers the machines of the catalogue, and creates simulated instances.

Requests are limited per second, offerings have no capacity at times, spot prices change by the hour, and responses are
lost, as the settings say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from shoal.autoscale.nodes.instance_types import SPOT, InstanceType
from shoal.autoscale.nodes.pools import NodePool
from shoal.client.clock import Clock
from shoal.client.kind import CONFIG_MAPS
from shoal.client.port import Api, Deletion, Patch, Select
from shoal.client.refusals import AlreadyExistsError, NotFoundError
from shoal.cloud.port import LAUNCH_LIMIT_S, CloudInstance, InstanceRequest, NoCapacityError, ThrottledError
from shoal.embedded.cloud.chance import Chance
from shoal.embedded.cloud.machine_types import offered_types
from shoal.embedded.cloud.records import (
    LABEL,
    NAMESPACE,
    InstanceRecord,
    record_name,
    record_object,
    record_of,
)
from shoal.embedded.cloud.settings import CloudSettings
from shoal.embedded.machines.machine_types import shape_named
from shoal.units.errors import TemporaryError

_RECORDS: Final = Select(labels=LABEL)
_RETRY_S: Final = 2.0


class SimulatedCloud:
    def __init__(self, api: Api, clock: Clock, settings: CloudSettings) -> None:
        self.name = "simulated"
        self.launch_limit_s = LAUNCH_LIMIT_S
        self._api = api
        self._clock = clock
        self._settings = settings
        self._chance = Chance(settings)
        self._attempts: dict[str, int] = {}
        self._allowance = settings.requests_per_second
        self._refilled_s = clock.seconds()

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        now_s = self._clock.seconds()
        return tuple(self._at_market_price(one, now_s) for one in offered_types(pool, self._settings.zones))

    async def create(self, request: InstanceRequest) -> tuple[CloudInstance, ...]:
        self._take_allowance()
        now_s = self._clock.seconds()
        attempt = self._attempts[request.token] = self._attempts.get(request.token, 0) + 1
        record = await self._find(request.token)
        if record is None:
            await self._check_capacity(request, now_s)
            record = InstanceRecord(request, now_s)
            try:
                await self._api.create(CONFIG_MAPS, record_object(record))
            except AlreadyExistsError:
                record = await self._find(request.token) or record
        if self._chance.loses_response(request.token, attempt):
            raise TemporaryError("the cloud did not answer in time", _RETRY_S)
        return self._instances_of(record, now_s)

    async def instances(self) -> tuple[CloudInstance, ...]:
        self._take_allowance()
        now_s = self._clock.seconds()
        found = [each for record in await self._records() for each in self._instances_of(record, now_s)]
        return tuple(sorted(found, key=lambda each: each.id))

    async def delete(self, ids: Sequence[str]) -> None:
        self._take_allowance()
        wanted = frozenset(each.removeprefix("i-") for each in ids)
        for record in await self._records():
            gone = wanted & frozenset(record.present())
            if gone:
                await write_deleted(self._api, record, gone)

    def boot_s(self, _instance_type: str, /) -> float:
        return self._settings.at_s("devices")

    # -- internals ----------------------------------------------------------------------------------------------------

    async def _find(self, token: str) -> InstanceRecord | None:
        try:
            return record_of(await self._api.get(CONFIG_MAPS, NAMESPACE, record_name(token)))
        except NotFoundError:
            return None

    async def _records(self) -> list[InstanceRecord]:
        listed = await self._api.list(CONFIG_MAPS, NAMESPACE, _RECORDS)
        return [record for item in listed.items if (record := record_of(item)) is not None]

    async def _check_capacity(self, request: InstanceRequest, now_s: float) -> None:
        offering = request.instance_type, request.zone, request.capacity_type
        words = "/".join(offering)
        if shape_named(request.instance_type) is None:
            raise NoCapacityError(f"instance type {request.instance_type} is not offered")
        if self._chance.has_outage(words, now_s):
            raise NoCapacityError(f"there is no capacity for {words} at the moment")
        rules = [rule for rule in self._settings.capacity if rule.matches(*offering)]
        if not rules:
            return
        present = [each for record in await self._records() for each in self._instances_of(record, now_s)]
        for rule in rules:
            used = sum(rule.matches(each.instance_type, each.zone, each.capacity_type) for each in present)
            if used + request.count > rule.instances:
                raise NoCapacityError(f"there is no capacity for {request.count} x {words} at the moment")

    def _instances_of(self, record: InstanceRecord, now_s: float) -> tuple[CloudInstance, ...]:
        return tuple(
            each
            for instance in record.present()
            if (each := instance_of(record, instance, self._settings, self._chance, now_s)) is not None
        )

    def _at_market_price(self, one: InstanceType, now_s: float) -> InstanceType:
        mean_s = self._settings.spot.mean_lifetime_s
        return replace(
            one,
            offerings=tuple(
                replace(
                    each,
                    price=each.price * self._chance.price_factor(f"{one.name}/{each.zone}", now_s),
                    interruptions_per_hour=3600.0 / mean_s if mean_s else 0.0,
                )
                if each.capacity_type == SPOT
                else each
                for each in one.offerings
            ),
        )

    def _take_allowance(self) -> None:
        now_s, rate = self._clock.seconds(), self._settings.requests_per_second
        # As many requests as in one second may come at once, and at least one.
        most = max(rate, 1.0)
        self._allowance = min(self._allowance + (now_s - self._refilled_s) * rate, most)
        self._refilled_s = now_s
        if self._allowance < 1.0:
            raise ThrottledError("too many requests to the cloud", (1.0 - self._allowance) / rate)
        self._allowance -= 1.0


def instance_of(
    record: InstanceRecord, instance: str, settings: CloudSettings, chance: Chance, now_s: float
) -> CloudInstance | None:
    """The instance now; None once the cloud has taken it back."""
    request = record.request
    interrupted_s: float | None = None
    if request.capacity_type == SPOT and (lifetime_s := chance.lifetime_s(instance)) is not None:
        interrupted_s = record.created_s + lifetime_s
        if now_s >= interrupted_s:
            return None
        if now_s < interrupted_s - settings.spot.notice_s:
            interrupted_s = None
    return CloudInstance(
        id=f"i-{instance}",
        provider_id=provider_id_of(request, instance),
        instance_type=request.instance_type,
        zone=request.zone,
        capacity_type=request.capacity_type,
        state="running" if now_s >= record.created_s + settings.at_s("running") else "pending",
        created_s=record.created_s,
        tags=request.tags,
        interrupted_s=interrupted_s,
    )


def provider_id_of(request: InstanceRequest, instance: str) -> str:
    shape = shape_named(request.instance_type)
    scheme = {"aws": "aws", "gcp": "gce", "azure": "azure"}.get(shape.provider if shape is not None else "", "shoal")
    return f"{scheme}:///{request.zone}/i-{instance}"


async def write_deleted(api: Api, record: InstanceRecord, gone: frozenset[str]) -> None:
    """Take these instances away; a record of which no instance is left goes as a whole."""
    deleted = record.deleted | gone
    name = record_name(record.request.token)
    try:
        if deleted >= frozenset(record.ids()):
            await api.delete(CONFIG_MAPS, NAMESPACE, name, Deletion())
        else:
            body = {"data": {"deleted": ",".join(sorted(deleted))}}
            await api.patch(CONFIG_MAPS, NAMESPACE, name, Patch("merge", body))
    except NotFoundError:
        return
