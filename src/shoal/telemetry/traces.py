"""Reports requests and scheduling cycles as OpenTelemetry spans, if the environment names a collector.

Guarantees: without `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` nothing of OpenTelemetry is
imported. A missing package or collector never stops Shoal. Spans are exported by a thread, in batches.

Rejected: spans as contexts around each request. The client and the engine would depend on OpenTelemetry, and a context
costs more than some requests of the embedded cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from time import time_ns
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_log = logging.getLogger("shoal.traces")
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NS = 1_000_000_000
Attributes = Mapping[str, str | int]


class Spans(Protocol):
    def done(self, name: str, seconds: float, attributes: Attributes, error: str = "") -> None:
        """Report work that ended now and took so many seconds. `error`: why it failed."""
        ...

    def close(self) -> None:
        """Export what is left."""
        ...


def spans_of(environment: Mapping[str, str]) -> Spans | None:
    """None if the environment names no collector, or switches traces off."""
    is_off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if is_off or environment.get("OTEL_TRACES_EXPORTER") == "none" or not any(map(environment.get, _ENDPOINTS)):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        _log.warning("no traces are exported: install OpenTelemetry with pip install 'shoal[otel]'")
        return None
    name = environment.get("OTEL_SERVICE_NAME") or "shoal"
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return OpenTelemetrySpans(provider)


class OpenTelemetrySpans:
    def __init__(self, provider: TracerProvider, now_ns: Callable[[], int] = time_ns) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("shoal")
        self._now_ns = now_ns

    def done(self, name: str, seconds: float, attributes: Attributes, error: str = "") -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        end = self._now_ns()
        kind = SpanKind.CLIENT if "k8s.verb" in attributes else SpanKind.INTERNAL
        span = self._tracer.start_span(name, kind=kind, attributes={**attributes}, start_time=end - int(seconds * _NS))
        if error:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(end)

    def close(self) -> None:
        self._provider.shutdown()
