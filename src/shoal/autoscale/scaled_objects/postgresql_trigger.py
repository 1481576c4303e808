"""The trigger postgresql."""

from __future__ import annotations

from shoal.autoscale.scaled_objects.metric_names import indexed_name
from shoal.autoscale.scaled_objects.spec import Trigger
from shoal.autoscale.scaled_objects.trigger_metadata import TriggerMetadata
from shoal.autoscale.scaled_objects.trigger_sources import Bounds, PostgresQuery, ReadTrigger, external_trigger

_SSL_MODES = ("", "disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def postgresql(trigger: Trigger, metadata: TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    query = metadata.text("query")
    bounds = Bounds(metadata.positive("targetQueryValue"), metadata.number("activationTargetQueryValue", 0.0))
    connection = metadata.optional_secret("connection")
    if connection:
        source = PostgresQuery(query, connection)
    else:
        source = PostgresQuery(
            query,
            "",
            metadata.any_text("host"),
            metadata.any_text("port", "5432"),
            metadata.any_text("userName"),
            metadata.optional_secret("password"),
            metadata.any_text("dbName"),
            metadata.choice("sslmode", _SSL_MODES),
        )
    return external_trigger(trigger, index, indexed_name(index, "postgresql"), source, bounds)
