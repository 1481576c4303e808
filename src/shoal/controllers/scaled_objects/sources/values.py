"""Reads the value of a trigger from its server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from shoal.autoscale.scaled_objects.answers import api_value, prometheus_value
from shoal.autoscale.scaled_objects.external_scaler import NamedTarget
from shoal.autoscale.scaled_objects.rabbitmq_trigger import queue_value
from shoal.autoscale.scaled_objects.trigger_sources import (
    AmqpQueue,
    ApiValue,
    ExternalScaler,
    KafkaLag,
    NetworkSource,
    PostgresQuery,
    PrometheusQuery,
    RabbitQueue,
    RedisList,
    RedisStream,
    SqsQueue,
)
from shoal.client.clock import Clock
from shoal.client.item import Key
from shoal.controllers.scaled_objects.sources.amqp import ready_messages
from shoal.controllers.scaled_objects.sources.connections import Connections
from shoal.controllers.scaled_objects.sources.http import HttpSource
from shoal.controllers.scaled_objects.sources.kafka import KafkaSource
from shoal.controllers.scaled_objects.sources.postgresql import check_connection, query_value
from shoal.controllers.scaled_objects.sources.redis import redis_value
from shoal.controllers.scaled_objects.sources.sqs import message_total


class FoundValue(Struct, frozen=True):
    value: float
    compared: float | None = None
    """What is compared with the activation value, if it is not the value itself."""
    said_active: bool | None = None
    """What the server itself said."""

    def is_active(self, activation: float) -> bool:
        if self.said_active is not None:
            return self.said_active
        return (self.value if self.compared is None else self.compared) > activation


class SourceValues:
    def __init__(self, http: HttpSource, clock: Clock) -> None:
        self._http = http
        self._clock = clock
        self._connections = Connections(http.addresses)
        self._kafka = KafkaSource(self._connections)

    async def targets(self, scaler: ExternalScaler, owner: Key) -> Sequence[NamedTarget]:
        """Raises TemporaryError."""
        # Imported here: gRPC takes 21 MB, and most clusters have no external scaler.
        from shoal.controllers.scaled_objects.sources.external import external_targets

        return await external_targets(self._connections, scaler, *owner)

    def check(self, source: object) -> None:
        """Raises TriggerError for settings that only the library of the source can check, or if it is missing."""
        if isinstance(source, PostgresQuery):
            check_connection(source)

    async def value(self, source: NetworkSource, namespace: str, now: datetime) -> FoundValue:
        """Raises AnswerError, TriggerError or TemporaryError."""
        if isinstance(source, RedisList | RedisStream):
            return FoundValue(float(await redis_value(self._connections, source)))
        if isinstance(source, AmqpQueue):
            return FoundValue(float(await ready_messages(self._connections, source)))
        if isinstance(source, KafkaLag):
            lag = await self._kafka.lag(namespace, source, self._clock.seconds())
            return FoundValue(lag.value, lag.is_above)
        if isinstance(source, PostgresQuery):
            return FoundValue(await query_value(self._connections, source))
        if isinstance(source, SqsQueue):
            return FoundValue(await message_total(self._http, source, now))
        if isinstance(source, PrometheusQuery | ApiValue | RabbitQueue):
            return FoundValue(_read(source, await self._http.get(source.request)))
        from shoal.controllers.scaled_objects.sources.external import external_value

        found = await external_value(self._connections, source)
        return FoundValue(found.value, said_active=found.is_active)


def _read(source: PrometheusQuery | ApiValue | RabbitQueue, body: bytes) -> float:
    """Raises AnswerError."""
    if isinstance(source, PrometheusQuery):
        return prometheus_value(body, ignores_null=source.ignores_null)
    if isinstance(source, RabbitQueue):
        return queue_value(body, source)
    return api_value(body, source.form, source.location)
