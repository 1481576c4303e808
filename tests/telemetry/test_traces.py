"""Requests and scheduling cycles as OpenTelemetry spans, read back from an exporter in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import NODES
from shoal.client.refusals import NotFoundError
from shoal.engine.plan import Place, Plan, Refuse
from shoal.engine.reasons import Code
from shoal.prometheus.registry import Registry
from shoal.telemetry.observed_api import ObservedApi, Observers
from shoal.telemetry.observers import SchedulingObserver
from shoal.telemetry.scheduling import SchedulingMetrics
from shoal.telemetry.traces import OpenTelemetrySpans, spans_of

NOW_NS = 1_800_000_000_000_000_000


class Collected:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.spans = OpenTelemetrySpans(provider, lambda: NOW_NS)


@virtual
async def test_each_request_is_a_span_with_its_verb_and_resource(tmp_path: Path) -> None:
    collected = Collected()
    async with small_cluster(tmp_path) as cluster:
        api = ObservedApi(cluster.api, cluster.clock, Observers(spans=collected.spans))
        await api.list(NODES)
        with pytest.raises(NotFoundError):
            await api.get(NODES, "", "none")
    listed, got = collected.exporter.get_finished_spans()
    assert (listed.name, listed.kind, listed.status.status_code) == ("list nodes", SpanKind.CLIENT, StatusCode.UNSET)
    assert dict(listed.attributes or {}) == {"k8s.verb": "list", "k8s.group": "", "k8s.resource": "nodes"}
    assert (got.name, got.status.status_code) == ("get nodes", StatusCode.ERROR)
    assert "none" in (got.status.description or "")


def test_a_cycle_is_a_span_with_what_it_decided() -> None:
    collected = Collected()
    seconds = iter((10.0, 10.5))
    observer = SchedulingObserver(
        SchedulingMetrics(Registry()), lambda _: "shoal", timer=lambda: next(seconds), spans=collected.spans
    )
    observer.outcomes()
    observer.carry_out(Plan(0.0, 1, (Place("t/a", "n", None), Refuse("t/b", Code.NO_NODES))))
    (span,) = collected.exporter.get_finished_spans()
    assert span.name == "scheduling cycle"
    assert (span.start_time, span.end_time) == (NOW_NS - 500_000_000, NOW_NS)
    assert dict(span.attributes or {}) == {
        "shoal.placed": 1,
        "shoal.refused": 1,
        "shoal.evicted": 0,
        "shoal.moved": 0,
    }


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SERVICE_NAME": "x"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_without_a_collector_in_the_environment_there_are_no_traces(environment: dict[str, str]) -> None:
    assert spans_of(environment) is None


def test_a_collector_in_the_environment_switches_traces_on() -> None:
    spans = spans_of({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9/v1/traces"})
    assert isinstance(spans, OpenTelemetrySpans)
    spans.close()


def test_opentelemetry_is_not_imported_without_a_collector() -> None:
    script = "import sys, shoal.wiring.run; print([each for each in sys.modules if each.startswith('opentelemetry')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
