"""Within which time workloads of a queue should get quota, as its annotation says."""

from __future__ import annotations

import pytest

from build.queue_manifests import KUEUE
from shoal.api.decode import read
from shoal.api.kueue import ClusterQueue
from shoal.engine.from_api.queues.quotas import cluster_queue_facts_of
from shoal.engine.from_api.queues.wait_slo import wait_slo_of


@pytest.mark.parametrize(("text", "seconds"), [("30m", 1800), ("1h30m", 5400), ("2d", 172_800), ("45s", 45)])
def test_a_time_span_is_read(text: str, seconds: float) -> None:
    found = wait_slo_of({"shoal.dev/wait-slo": text})
    assert (found.seconds, found.fault) == (seconds, "")


@pytest.mark.parametrize("text", ["", "soon", "0s", "-5m", "30"])
def test_what_is_no_time_span_is_a_fault_and_half_an_hour_counts(text: str) -> None:
    found = wait_slo_of({"shoal.dev/wait-slo": text})
    assert found.seconds == 1800
    assert "write e.g. 30m" in found.fault


def test_without_the_annotation_half_an_hour_counts() -> None:
    assert (wait_slo_of({}).seconds, wait_slo_of({}).fault) == (1800, "")


def test_the_facts_of_a_cluster_queue_have_it() -> None:
    meta = '{"name": "q", "annotations": {"shoal.dev/wait-slo": "15m"}}'
    text = f'{{"apiVersion": "{KUEUE}", "kind": "ClusterQueue", "metadata": {meta}, "spec": {{}}}}'
    (document,) = read(text.encode())
    assert isinstance(document.value, ClusterQueue)
    assert cluster_queue_facts_of(document.value).wait_slo_s == 900
