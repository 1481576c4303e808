"""The trigger rabbitmq: by AMQP the messages that are ready, by the management API all figures of a queue."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, quote_plus, unquote, urlsplit

import msgspec
from msgspec import Struct

from shoal.autoscale.scaled_objects.answers import AnswerError
from shoal.autoscale.scaled_objects.metric_names import indexed_name
from shoal.autoscale.scaled_objects.spec import Trigger
from shoal.autoscale.scaled_objects.trigger_metadata import TriggerError, TriggerMetadata
from shoal.autoscale.scaled_objects.trigger_sources import (
    AmqpQueue,
    Bounds,
    HttpRequest,
    RabbitQueue,
    ReadTrigger,
    external_trigger,
)
from shoal.autoscale.scaled_objects.trigger_tls import is_tls_enabled, server_tls

LENGTH, PUBLISHED, DELIVERED = "QueueLength", "MessageRate", "DeliverGetRate"
RATIO, TIME = "PublishedToDeliveredRatio", "ExpectedQueueConsumptionTime"
_MODES = (LENGTH, PUBLISHED, DELIVERED, RATIO, TIME)
_OPERATIONS = ("sum", "max", "avg")
_PORTS = {"amqp": 5672, "amqps": 5671}
_USUAL_LENGTH = 20.0


class _Host(Struct, frozen=True):
    """The parts of the address of a broker. Credentials of the authentication replace those of the address."""

    scheme: str
    name: str
    port: int | None
    path: str
    virtual_host: str
    username: str
    password: str


def rabbitmq(trigger: Trigger, metadata: TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    queue, host = metadata.text("queueName"), _host(metadata)
    is_amqp = metadata.choice("protocol", ("auto", "amqp", "http"))
    by_amqp = host.scheme in _PORTS if is_amqp == "auto" else is_amqp == "amqp"
    if by_amqp != (host.scheme in _PORTS):
        raise TriggerError(f'protocol "{is_amqp}" does not fit the scheme of host "{host.scheme}"')
    mode, value = metadata.text("mode", LENGTH), metadata.number("value", 0.0)
    if metadata.text("queueLength", ""):
        if value:
            raise TriggerError("queueLength is deprecated; configure only mode and value")
        value = metadata.number("queueLength")
    elif not metadata.text("value", "") and not metadata.text("mode", ""):
        value = _USUAL_LENGTH
    if mode not in _MODES:
        raise TriggerError(f'trigger mode "{mode}" must be one of {", ".join(_MODES)}')
    if value <= 0:
        raise TriggerError(f'parameter "value" must be greater than 0 in mode {mode}')
    bounds = Bounds(value, metadata.number("activationValue", 0.0))
    source = _by_amqp(metadata, host, queue, mode) if by_amqp else _by_http(metadata, host, queue, mode)
    name = indexed_name(index, f"rabbitmq-{quote_plus(queue)}")
    return external_trigger(trigger, index, name, source, bounds)


def _host(metadata: TriggerMetadata) -> _Host:
    """An error names no part of the address: it may contain a password."""
    text = metadata.any_text("host")
    try:
        parts = urlsplit(text)
        scheme, name, port = parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        scheme, name, port = "", "", None
    if not name or scheme not in (*_PORTS, "http", "https"):
        raise TriggerError('parameter "host" is not an address: write amqp://HOST:PORT/VHOST or http://HOST:PORT/VHOST')
    folder, _, last = parts.path.rpartition("/")
    virtual_host = metadata.any_text("vhostName", "") or unquote(last) or "/"
    username = metadata.optional_secret("username") or unquote(parts.username or "")
    password = metadata.optional_secret("password") or unquote(parts.password or "")
    return _Host(scheme, name, port, folder, virtual_host, username, password)


def _by_amqp(metadata: TriggerMetadata, host: _Host, queue: str, mode: str) -> AmqpQueue:
    if mode != LENGTH:
        raise TriggerError(f"protocol amqp not supported for mode {mode}; use protocol http")
    for name in ("useRegex", "excludeUnacknowledged"):
        if metadata.flag(name, usual=False):
            raise TriggerError(f'configure "{name}" only with protocol http')
    has_tls = host.scheme == "amqps" or is_tls_enabled(metadata)
    port = host.port or _PORTS["amqps" if has_tls else "amqp"]
    return AmqpQueue(
        host.name,
        port,
        host.virtual_host,
        queue,
        host.username or "guest",
        host.password or ("" if host.username else "guest"),
        server_tls(metadata) if has_tls else None,
    )


def _by_http(metadata: TriggerMetadata, host: _Host, queue: str, mode: str) -> RabbitQueue:
    is_pattern = metadata.flag("useRegex", usual=False)
    shown = f"[{host.name}]" if ":" in host.name else host.name
    root = f"{host.scheme}://{shown}{f':{host.port}' if host.port else ''}{host.path}"
    url, query = f"{root}/api/queues/{quote(host.virtual_host, safe='')}", {}
    if is_pattern:
        size = int(metadata.positive("pageSize", 100.0))
        query = {"page": "1", "page_size": str(size), "pagination": "false", "use_regex": "true", "name": queue}
    else:
        url = f"{url}/{quote(queue, safe='')}"
    request = HttpRequest(
        url,
        query,
        {},
        host.username,
        host.password,
        metadata.seconds("timeout"),
        metadata.flag("unsafeSsl", usual=False),
    )
    operation = metadata.text("operation", "sum")
    if operation not in _OPERATIONS:
        raise TriggerError(f'parameter "operation" value "{operation}" must be one of [{" ".join(_OPERATIONS)}]')
    excludes = metadata.flag("excludeUnacknowledged", usual=False)
    if excludes and mode != LENGTH:
        raise TriggerError('configure "excludeUnacknowledged" only with mode QueueLength')
    return RabbitQueue(request, mode, is_pattern, operation, excludes)


# -- answers --------------------------------------------------------------------------------------------------------


class _Rate(Struct, frozen=True):
    rate: float = 0.0


class _Rates(Struct, frozen=True):
    publish_details: _Rate = _Rate()
    deliver_get_details: _Rate = _Rate()


class _Queue(Struct, frozen=True):
    """A queue in an answer. RabbitMQ leaves figures out until it has measured them."""

    messages: int = 0
    messages_ready: int = 0
    message_stats: _Rates = _Rates()


class _Page(Struct, frozen=True):
    items: tuple[_Queue, ...] = ()


def queue_value(body: bytes, asked: RabbitQueue) -> float:
    try:
        found: Sequence[_Queue] = (
            msgspec.json.decode(body, type=_Page).items
            if asked.is_pattern
            else [msgspec.json.decode(body, type=_Queue)]
        )
    except msgspec.DecodeError as error:
        raise AnswerError(f"the answer of rabbitmq cannot be read: {error}") from None
    if asked.is_pattern and not found:
        raise AnswerError("no queue of rabbitmq matches the regex of queueName")
    lengths = [one.messages_ready if asked.excludes_unacknowledged else one.messages for one in found]
    length = _combined(lengths, asked.operation)
    published = _combined([one.message_stats.publish_details.rate for one in found], asked.operation)
    delivered = _combined([one.message_stats.deliver_get_details.rate for one in found], asked.operation)
    if asked.mode == LENGTH:
        return length
    if asked.mode in (PUBLISHED, DELIVERED):
        return published if asked.mode == PUBLISHED else delivered
    # Of TIME: how long the consumers need for what waits and for what is published in a second.
    amount = published if asked.mode == RATIO else length + published
    if amount > 0 and delivered <= 0:
        raise AnswerError(
            f"rabbitmq reports no deliveries, so that {asked.mode} has no value; add a trigger by QueueLength"
        )
    return amount / delivered if amount > 0 else 0.0


def _combined(values: Sequence[float], operation: str) -> float:
    if operation == "max":
        return max(values)
    return sum(values) / (len(values) if operation == "avg" else 1)
