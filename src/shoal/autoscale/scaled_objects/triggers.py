"""Reads the triggers of a ScaledObject: their settings, the metric of the autoscaler that belongs to each, its target.

What is wrong is said as KEDA says it, with the parameter. A type that is not read here is an error, so that a
ScaledObject never follows only a part of its triggers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.api.selector_text import parse_label_selector
from shoal.autoscale.scaled_objects.cron import CronError, cron_metric_name, read_cron
from shoal.autoscale.scaled_objects.external_scaler import external_placeholder
from shoal.autoscale.scaled_objects.kafka_trigger import kafka
from shoal.autoscale.scaled_objects.metric_names import indexed_name
from shoal.autoscale.scaled_objects.postgresql_trigger import postgresql
from shoal.autoscale.scaled_objects.rabbitmq_trigger import rabbitmq
from shoal.autoscale.scaled_objects.redis_triggers import redis_list, redis_stream
from shoal.autoscale.scaled_objects.spec import AVERAGE_VALUE, CPU, CRON, MEMORY, UTILIZATION, Trigger
from shoal.autoscale.scaled_objects.sqs_trigger import sqs_queue
from shoal.autoscale.scaled_objects.trigger_metadata import Parameters, TriggerError, TriggerMetadata
from shoal.autoscale.scaled_objects.trigger_sources import (
    ApiValue,
    Bounds,
    HttpRequest,
    Metric,
    PodCount,
    PrometheusQuery,
    ReadTrigger,
    external_trigger,
)
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

WORKLOAD, PROMETHEUS, METRICS_API, REDIS = "kubernetes-workload", "prometheus", "metrics-api", "redis"
OWNER_LABEL = "scaledobject.keda.sh/name"


def read_trigger(
    trigger: Trigger, index: int, namespace: str, parameters: Parameters, environment: Mapping[str, str]
) -> ReadTrigger:
    """`parameters`: of its authentication; `environment`: of the container that the parameters name variables of."""
    read = _READERS.get(trigger.type)
    if read is None:
        known = ", ".join(sorted(_READERS))
        raise TriggerError(f"no scaler found for type: {trigger.type}; supported are {known}")
    try:
        return read(trigger, TriggerMetadata(trigger, parameters, environment), index, namespace)
    except TriggerError as error:
        raise TriggerError(f"error parsing {trigger.type} metadata: {error}") from None


# -- one type each --------------------------------------------------------------------------------------------------


def _cron(trigger: Trigger, _metadata: TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    try:
        window = read_cron(trigger.metadata)
    except CronError as error:
        raise TriggerError(str(error)) from None
    return external_trigger(trigger, index, cron_metric_name(window, index), window, Bounds(1.0))


def _workload(trigger: Trigger, metadata: TriggerMetadata, index: int, namespace: str) -> ReadTrigger:
    try:
        selector = parse_label_selector(metadata.text("podSelector"))
    except UserError as error:
        raise TriggerError(f"error parsing pod selector: {error.what}") from None
    value = metadata.number("value", 0.0)
    if value <= 0:
        raise TriggerError("value must be a float greater than 0")
    source = PodCount(selector, metadata.flag("groupByNode", usual=False))
    bounds = Bounds(value, metadata.number("activationValue", 0.0))
    return external_trigger(trigger, index, indexed_name(index, f"workload-{namespace}"), source, bounds)


def _prometheus(trigger: Trigger, metadata: TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    address, query = metadata.text("serverAddress"), metadata.text("query")
    asked = {"query": query, **metadata.pairs("queryParameters")}
    if space := metadata.text("namespace", ""):
        asked["namespace"] = space
    request = _request(metadata, f"{address.rstrip('/')}/api/v1/query", asked, metadata.pairs("customHeaders"))
    source = PrometheusQuery(request, metadata.flag("ignoreNullValues", usual=True))
    bounds = Bounds(metadata.number("threshold"), metadata.number("activationThreshold", 0.0))
    return external_trigger(trigger, index, indexed_name(index, "prometheus"), source, bounds)


def _metrics_api(trigger: Trigger, metadata: TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    form, location = metadata.text("format", "json"), metadata.text("valueLocation")
    if form not in ("json", "yaml", "prometheus"):
        raise TriggerError(f'parameter "format" value "{form}" must be one of [prometheus json yaml]')
    if metadata.flag("aggregateFromKubeServiceEndpoints", usual=False):
        raise TriggerError('parameter "aggregateFromKubeServiceEndpoints" is not supported')
    target = metadata.number("targetValue", 0.0)
    if not target:
        raise TriggerError("no targetValue given in metadata")
    source = ApiValue(_request(metadata, metadata.text("url"), {}, {}), form, location)
    bounds = Bounds(target, metadata.number("activationTargetValue", 0.0))
    return external_trigger(trigger, index, indexed_name(index, f"metric-api-{location}"), source, bounds)


def _request(metadata: TriggerMetadata, url: str, query: Mapping[str, str], headers: Mapping[str, str]) -> HttpRequest:
    """With the authentication that the trigger names."""
    if not url.startswith(("http://", "https://")):
        raise TriggerError(f'"{url}" is not an address: write http://HOST:PORT or https://HOST:PORT')
    query, headers = dict(query), dict(headers)
    username = password = ""
    modes = [one.strip() for one in (metadata.text("authModes", "") or metadata.text("authMode", "")).split(",")]
    for mode in filter(None, modes):
        if mode == "basic":
            username, password = metadata.secret("username"), metadata.parameters.get("password", "")
        elif mode == "bearer":
            token = metadata.parameters.get("bearerToken") or metadata.secret("token")
            headers["Authorization"] = f"Bearer {token}"
        elif mode == "custom":
            headers[metadata.secret("customAuthHeader")] = metadata.secret("customAuthValue")
        elif mode == "apiKey":
            name = metadata.parameters.get("keyParamName", "")
            place = query if metadata.parameters.get("method") == "query" else headers
            place[name or ("api_key" if place is query else "X-API-KEY")] = metadata.secret("apiKey")
        else:
            raise TriggerError(f'authentication mode "{mode}" is not supported')
    is_unsafe = metadata.flag("unsafeSsl", usual=False)
    return HttpRequest(url, query, headers, username, password, metadata.seconds("timeout"), is_unsafe)


def _resource(trigger: Trigger, metadata: TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    value, kind = metadata.text("value"), trigger.metric_type
    target: Metric = {"type": kind}
    if kind == UTILIZATION:
        if not value.isdecimal() or len(value) > 9:
            raise TriggerError(f'value "{value}" is not a percentage')
        target["averageUtilization"] = int(value)
    elif kind == AVERAGE_VALUE:
        try:
            target["averageValue"] = str(Quantity.parse(value))
        except UserError as error:
            raise TriggerError(error.what) from None
    else:
        raise TriggerError(f"unknown metric type: {kind}, allowed values are 'Utilization' or 'AverageValue'")
    container = metadata.text("containerName", "")
    metric: Metric = {"type": "Resource", "resource": {"name": trigger.type, "target": target}}
    if container:
        named = {"name": trigger.type, "container": container, "target": target}
        metric = {"type": "ContainerResource", "containerResource": named}
    return ReadTrigger(index, "", metric, None, trigger.name)


_READERS: Mapping[str, Callable[[Trigger, TriggerMetadata, int, str], ReadTrigger]] = {
    CPU: _resource,
    MEMORY: _resource,
    CRON: _cron,
    WORKLOAD: _workload,
    PROMETHEUS: _prometheus,
    METRICS_API: _metrics_api,
    REDIS: redis_list,
    "redis-streams": redis_stream,
    "rabbitmq": rabbitmq,
    "kafka": kafka,
    "aws-sqs-queue": sqs_queue,
    "postgresql": postgresql,
    "external": external_placeholder,
    "external-push": external_placeholder,
}
