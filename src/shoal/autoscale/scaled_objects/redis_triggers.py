"""The triggers redis (lists) and redis-streams."""

from __future__ import annotations

from shoal.autoscale.scaled_objects.metric_names import indexed_name
from shoal.autoscale.scaled_objects.spec import Trigger
from shoal.autoscale.scaled_objects.trigger_metadata import TriggerError, TriggerMetadata, host_and_port
from shoal.autoscale.scaled_objects.trigger_sources import (
    Bounds,
    ReadTrigger,
    RedisList,
    RedisServer,
    RedisStream,
    external_trigger,
)
from shoal.autoscale.scaled_objects.trigger_tls import server_tls


def redis_list(trigger: Trigger, metadata: TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    name = metadata.text("listName")
    bounds = Bounds(metadata.number("listLength", 5.0), metadata.number("activationListLength", 0.0))
    source = RedisList(_server(metadata), name)
    return external_trigger(trigger, index, indexed_name(index, f"redis-{name}"), source, bounds)


def redis_stream(trigger: Trigger, metadata: TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    """By the lag of a group, else by its entries that are not acknowledged, else by the length of the stream."""
    name, group = metadata.text("stream"), metadata.text("consumerGroup", "")
    has_lag = bool(metadata.text("lagCount", ""))
    bounds = Bounds(metadata.positive("streamLength", 5.0))
    if has_lag:
        if not group:
            raise TriggerError('parameter "lagCount" needs the parameter "consumerGroup"')
        # A lag without its activation value would keep the target at zero or above it by accident.
        bounds = Bounds(metadata.positive("lagCount"), metadata.number("activationLagCount"))
    elif group:
        bounds = Bounds(metadata.positive("pendingEntriesCount", 5.0))
    source = RedisStream(_server(metadata), name, group, has_lag)
    return external_trigger(trigger, index, indexed_name(index, f"redis-streams-{name}"), source, bounds)


def _server(metadata: TriggerMetadata) -> RedisServer:
    address = metadata.any_text("address", "")
    if not address:
        address = f"{metadata.any_text('host')}:{metadata.any_text('port')}"
    host, port = host_and_port(address)
    has_tls = metadata.flag("enableTLS", usual=metadata.parameters.get("tls") == "enable")
    return RedisServer(
        host,
        port,
        int(metadata.number("databaseIndex", 0.0)),
        metadata.optional_secret("username"),
        metadata.optional_secret("password"),
        server_tls(metadata) if has_tls else None,
    )
