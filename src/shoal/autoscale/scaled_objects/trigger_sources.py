"""What a trigger reads: one type for each kind of source, and the trigger with the metric of its autoscaler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from shoal.api.selectors import Selector
from shoal.autoscale.scaled_objects.cron import CronWindow
from shoal.autoscale.scaled_objects.spec import AVERAGE_VALUE, VALUE, Trigger
from shoal.autoscale.scaled_objects.trigger_metadata import USUAL_TIMEOUT_S, TriggerError
from shoal.units.quantity import Quantity

Metric = dict[str, Any]


class PodCount(Struct, frozen=True):
    """Of the pods that a selector chooses, or of the nodes that they run on."""

    selector: Selector
    by_node: bool = False


class HttpRequest(Struct, frozen=True):
    url: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    username: str = ""
    password: str = ""
    timeout_s: float = USUAL_TIMEOUT_S
    is_unsafe: bool = False
    """Whether any certificate is accepted."""
    body: bytes | None = None
    """`None`: a GET request, else the body of a POST request."""


class PrometheusQuery(Struct, frozen=True):
    request: HttpRequest
    ignores_null: bool = True
    """Whether an empty result is the value 0."""


class ApiValue(Struct, frozen=True):
    request: HttpRequest
    form: str
    location: str


class ServerTls(Struct, frozen=True):
    """How the connection to a server is encrypted. Certificates and keys are texts in PEM."""

    is_unsafe: bool = False
    """Whether any certificate is accepted."""
    ca: str = ""
    """Empty: the authorities of the system."""
    cert: str = ""
    key: str = ""
    key_password: str = ""


class RedisServer(Struct, frozen=True):
    host: str
    port: int
    database: int = 0
    username: str = ""
    password: str = ""
    tls: ServerTls | None = None


class RedisList(Struct, frozen=True):
    """The length of a list, set, sorted set or hash."""

    server: RedisServer
    name: str


class RedisStream(Struct, frozen=True):
    """The length of a stream; or of a consumer group the entries that are not acknowledged, or not delivered."""

    server: RedisServer
    name: str
    group: str = ""
    reads_lag: bool = False


class AmqpQueue(Struct, frozen=True):
    """The messages that are ready in a queue, by AMQP 0-9-1."""

    host: str
    port: int
    virtual_host: str
    queue: str
    username: str
    password: str
    tls: ServerTls | None = None


class RabbitQueue(Struct, frozen=True):
    """A figure of one or several queues, by the management API of RabbitMQ."""

    request: HttpRequest
    mode: str
    is_pattern: bool = False
    operation: str = "sum"
    excludes_unacknowledged: bool = False


class KafkaServers(Struct, frozen=True):
    addresses: tuple[tuple[str, int], ...]
    tls: ServerTls | None = None
    mechanism: str = ""
    """Of SASL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or none."""
    username: str = ""
    password: str = ""


class KafkaLag(Struct, frozen=True):
    """How far a consumer group is behind the end of its partitions."""

    servers: KafkaServers
    group: str
    topic: str = ""
    """Empty: all topics for which the group has committed offsets."""
    threshold: float = 10.0
    partitions: tuple[tuple[int, int], ...] = ()
    """The ranges of partitions that count, first and last; none: all."""
    resets_to_earliest: bool = False
    allows_idle: bool = False
    is_zero_without_offset: bool = False
    excludes_persistent: bool = False
    is_limited_to_lagging: bool = False
    is_even: bool = False


class AwsCredentials(Struct, frozen=True):
    key_id: str
    secret: str
    token: str = ""


class SqsQueue(Struct, frozen=True):
    """The messages of a queue of Amazon SQS."""

    endpoint: str
    queue: str
    """Its URL, or its name."""
    region: str
    credentials: AwsCredentials
    counts_in_flight: bool = True
    counts_delayed: bool = False


class PostgresQuery(Struct, frozen=True):
    """The number in the first column of the first row."""

    query: str
    connection: str = ""
    """A connection string of libpq; empty: the fields below."""
    host: str = ""
    port: str = ""
    user: str = ""
    password: str = ""
    database: str = ""
    ssl_mode: str = ""


class ExternalScaler(Struct, frozen=True):
    """A server that speaks KEDA's external scaler protocol."""

    host: str
    port: int
    metadata: Mapping[str, str]
    tls: ServerTls | None = None


class ExternalScalerMetric(Struct, frozen=True):
    """One metric of such a server, for one object."""

    scaler: ExternalScaler
    owner: str
    namespace: str
    name: str


NetworkSource = (
    PrometheusQuery
    | ApiValue
    | RedisList
    | RedisStream
    | AmqpQueue
    | RabbitQueue
    | KafkaLag
    | SqsQueue
    | PostgresQuery
    | ExternalScalerMetric
)
TriggerSource = CronWindow | PodCount | NetworkSource


class ReadTrigger(Struct, frozen=True):
    index: int
    name: str
    """Of the external metric; empty for cpu and memory."""
    metric: Metric
    """The metric of the autoscaler."""
    source: TriggerSource | None
    """`None`: the autoscaler reads the metric itself."""
    trigger_name: str = ""
    target: float = 0.0
    target_type: str = AVERAGE_VALUE
    activation: float = 0.0


class Bounds(Struct, frozen=True):
    """The target, and the value above which the trigger is active."""

    target: float
    activation: float = 0.0


def external_trigger(trigger: Trigger, index: int, name: str, source: TriggerSource, bounds: Bounds) -> ReadTrigger:
    """`name`: of the external metric."""
    kind = trigger.metric_type or AVERAGE_VALUE
    if kind not in (AVERAGE_VALUE, VALUE):
        raise TriggerError(
            f"'{kind}' metric type is unsupported for external metrics, allowed values are 'Value' or 'AverageValue'"
        )
    metric = external_metric(name, kind, bounds.target)
    return ReadTrigger(index, name, metric, source, trigger.name, bounds.target, kind, bounds.activation)


def external_metric(name: str, kind: str, target: float) -> Metric:
    key = "averageValue" if kind == AVERAGE_VALUE else "value"
    milli = round(max(target, 0.0) * 1000)
    written = {"type": kind, key: str(Quantity.of_milli(milli))}
    return {"type": "External", "external": {"metric": {"name": name}, "target": written}}
