"""Reads the triggers of a ScaledObject: their settings, the metric of the autoscaler that belongs to each, its target.

What is wrong is said as KEDA says it, with the parameter. A type that is not read here is an error, so that a
ScaledObject never follows only a part of its triggers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from shoal.api.selector_text import parse_label_selector
from shoal.api.selectors import Selector
from shoal.autoscale.scaled_objects.cron import CronError, CronWindow, cron_metric_name, read_cron
from shoal.autoscale.scaled_objects.metric_names import indexed_name
from shoal.autoscale.scaled_objects.spec import AVERAGE_VALUE, CPU, CRON, MEMORY, UTILIZATION, VALUE, Trigger
from shoal.units.durations import DurationError, nanoseconds
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

WORKLOAD, PROMETHEUS, METRICS_API, REDIS = "kubernetes-workload", "prometheus", "metrics-api", "redis"
OWNER_LABEL = "scaledobject.keda.sh/name"
_TRUE, _FALSE = (
    frozenset({"1", "t", "T", "TRUE", "true", "True"}),
    frozenset({"0", "f", "F", "FALSE", "false", "False"}),
)
_USUAL_TIMEOUT_S = 3.0
_LONGEST_TIMEOUT_S = 30.0
"""A server that does not answer must not hold up the other ScaledObjects for long."""
Metric = dict[str, Any]
Parameters = Mapping[str, str]


class TriggerError(ValueError):
    """A trigger is invalid."""


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
    timeout_s: float = _USUAL_TIMEOUT_S
    is_unsafe: bool = False
    """Whether any certificate is accepted."""


class PrometheusQuery(Struct, frozen=True):
    request: HttpRequest
    ignores_null: bool = True
    """Whether an empty result is the value 0."""


class ApiValue(Struct, frozen=True):
    request: HttpRequest
    form: str
    location: str


class RedisList(Struct, frozen=True):
    """The length of a list, set, sorted set or hash."""

    host: str
    port: int
    name: str
    database: int = 0
    username: str = ""
    password: str = ""
    has_tls: bool = False
    is_unsafe: bool = False


TriggerSource = CronWindow | PodCount | PrometheusQuery | ApiValue | RedisList


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


class _TriggerMetadata:
    """The metadata of a trigger, with the parameters of its authentication."""

    def __init__(self, trigger: Trigger, parameters: Parameters) -> None:
        self.written = trigger.metadata
        self.parameters = parameters

    def text(self, name: str, usual: str | None = None) -> str:
        found = self.written.get(name, "")
        if found:
            return found
        if usual is None:
            raise TriggerError(f'missing required parameter "{name}" in [triggerMetadata]')
        return usual

    def secret(self, name: str) -> str:
        found = self.parameters.get(name, "")
        if not found:
            raise TriggerError(f'missing required parameter "{name}" in [authParams]')
        return found

    def number(self, name: str, usual: float | None = None) -> float:
        text = self.text(name, "" if usual is not None else None)
        if not text:
            return usual or 0.0
        try:
            found = float(text) if "_" not in text else math.nan
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            raise TriggerError(f'unable to set param "{name}" value "{text}": it is not a number')
        return found

    def flag(self, name: str, *, usual: bool) -> bool:
        text = self.text(name, "")
        if text and text not in _TRUE | _FALSE:
            raise TriggerError(f'unable to set param "{name}" value "{text}": it is neither true nor false')
        return text in _TRUE if text else usual

    def pairs(self, name: str) -> dict[str, str]:
        """`a=b,c=d`."""
        parts = [one.partition("=") for one in self.text(name, "").split(",") if one]
        if any(not mark for _, mark, _ in parts):
            raise TriggerError(f'unable to set param "{name}": write key=value, separated by commas')
        return {key.strip(): value.strip() for key, _, value in parts}

    def seconds(self, name: str) -> float:
        """A Go duration, or milliseconds as a number. At most the longest timeout."""
        text = self.text(name, "")
        if not text:
            return _USUAL_TIMEOUT_S
        try:
            found = float(text) / 1000 if text.isdecimal() else nanoseconds(text) / 1e9
        except DurationError as error:
            raise TriggerError(f'unable to set param "{name}" value "{text}": {error}') from None
        if found <= 0:
            raise TriggerError(f'unable to set param "{name}" value "{text}": it is not positive')
        return min(found, _LONGEST_TIMEOUT_S)


def read_trigger(trigger: Trigger, index: int, namespace: str, parameters: Parameters) -> ReadTrigger:
    """`parameters`: of its authentication."""
    read = _READERS.get(trigger.type)
    if read is None:
        known = ", ".join(sorted(_READERS))
        raise TriggerError(f"no scaler found for type: {trigger.type}; supported are {known}")
    try:
        return read(trigger, _TriggerMetadata(trigger, parameters), index, namespace)
    except TriggerError as error:
        raise TriggerError(f"error parsing {trigger.type} metadata: {error}") from None


# -- one type each --------------------------------------------------------------------------------------------------


def _cron(trigger: Trigger, _metadata: _TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    try:
        window = read_cron(trigger.metadata)
    except CronError as error:
        raise TriggerError(str(error)) from None
    return _external(trigger, index, cron_metric_name(window, index), window, (1.0, 0.0))


def _workload(trigger: Trigger, metadata: _TriggerMetadata, index: int, namespace: str) -> ReadTrigger:
    try:
        selector = parse_label_selector(metadata.text("podSelector"))
    except UserError as error:
        raise TriggerError(f"error parsing pod selector: {error.what}") from None
    value = metadata.number("value", 0.0)
    if value <= 0:
        raise TriggerError("value must be a float greater than 0")
    source = PodCount(selector, metadata.flag("groupByNode", usual=False))
    bounds = (value, metadata.number("activationValue", 0.0))
    return _external(trigger, index, indexed_name(index, f"workload-{namespace}"), source, bounds)


def _prometheus(trigger: Trigger, metadata: _TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    address, query = metadata.text("serverAddress"), metadata.text("query")
    asked = {"query": query, **metadata.pairs("queryParameters")}
    if space := metadata.text("namespace", ""):
        asked["namespace"] = space
    request = _request(metadata, f"{address.rstrip('/')}/api/v1/query", asked, metadata.pairs("customHeaders"))
    source = PrometheusQuery(request, metadata.flag("ignoreNullValues", usual=True))
    bounds = (metadata.number("threshold"), metadata.number("activationThreshold", 0.0))
    return _external(trigger, index, indexed_name(index, "prometheus"), source, bounds)


def _metrics_api(trigger: Trigger, metadata: _TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    form, location = metadata.text("format", "json"), metadata.text("valueLocation")
    if form not in ("json", "yaml", "prometheus"):
        raise TriggerError(f'parameter "format" value "{form}" must be one of [prometheus json yaml]')
    if metadata.flag("aggregateFromKubeServiceEndpoints", usual=False):
        raise TriggerError('parameter "aggregateFromKubeServiceEndpoints" is not supported')
    target = metadata.number("targetValue", 0.0)
    if not target:
        raise TriggerError("no targetValue given in metadata")
    source = ApiValue(_request(metadata, metadata.text("url"), {}, {}), form, location)
    bounds = (target, metadata.number("activationTargetValue", 0.0))
    return _external(trigger, index, indexed_name(index, f"metric-api-{location}"), source, bounds)


def _redis(trigger: Trigger, metadata: _TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    address = metadata.text("address", "") or metadata.parameters.get("address", "")
    if not address:
        address = f"{metadata.text('host')}:{metadata.text('port')}"
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port[:6]) < 65536:
        raise TriggerError(f'"{address}" is not an address: write HOST:PORT')
    name = metadata.text("listName")
    source = RedisList(
        host.strip("[]"),
        int(port),
        name,
        int(metadata.number("databaseIndex", 0.0)),
        metadata.parameters.get("username", ""),
        metadata.parameters.get("password", ""),
        metadata.flag("enableTLS", usual=metadata.parameters.get("tls") == "enable"),
        metadata.flag("unsafeSsl", usual=False),
    )
    bounds = (metadata.number("listLength", 5.0), metadata.number("activationListLength", 0.0))
    return _external(trigger, index, indexed_name(index, f"redis-{name}"), source, bounds)


def _request(metadata: _TriggerMetadata, url: str, query: Mapping[str, str], headers: Mapping[str, str]) -> HttpRequest:
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


def _resource(trigger: Trigger, metadata: _TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
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


def _external(
    trigger: Trigger,
    index: int,
    name: str,
    source: TriggerSource,
    bounds: tuple[float, float],
) -> ReadTrigger:
    """`bounds`: the target, and the value above which the trigger is active."""
    kind = trigger.metric_type or AVERAGE_VALUE
    if kind not in (AVERAGE_VALUE, VALUE):
        raise TriggerError(
            f"'{kind}' metric type is unsupported for external metrics, allowed values are 'Value' or 'AverageValue'"
        )
    target, activation = bounds
    metric = external_metric(name, kind, target)
    return ReadTrigger(index, name, metric, source, trigger.name, target, kind, activation)


def external_metric(name: str, kind: str, target: float) -> Metric:
    key = "averageValue" if kind == AVERAGE_VALUE else "value"
    milli = round(max(target, 0.0) * 1000)
    written = {"type": kind, key: str(Quantity.of_milli(milli))}
    return {"type": "External", "external": {"metric": {"name": name}, "target": written}}


_READERS: Mapping[str, Callable[[Trigger, _TriggerMetadata, int, str], ReadTrigger]] = {
    CPU: _resource,
    MEMORY: _resource,
    CRON: _cron,
    WORKLOAD: _workload,
    PROMETHEUS: _prometheus,
    METRICS_API: _metrics_api,
    REDIS: _redis,
}
