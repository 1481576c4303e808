"""The replica count of a metric agrees with the published formula, written a second time, branch by branch."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.api.pod import Pod
from shoal.api.wire import dec_hook
from shoal.autoscale.replicas.behavior import Tolerances
from shoal.autoscale.replicas.proposals import (
    PassFacts,
    Proposal,
    average_proposal,
    per_pod_proposal,
    utilization_proposal,
    value_proposal,
)
from shoal.autoscale.replicas.samples import MetricFault, MetricSample
from shoal.autoscale.replicas.spec import AutoscalerSettings

NOW = datetime(2026, 11, 27, tzinfo=UTC)
LONG_AGO = "2020-01-01T00:00:00Z"

Row = tuple[str, int | None, int]
"""Phase, value of the sample in thousandths, and request."""

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["Running", "Running", "Running", "Pending", "Failed", "Succeeded", "deleting"]),
        st.none() | st.integers(0, 3000),
        st.sampled_from([100, 500, 1000]),
    ),
    min_size=0,
    max_size=7,
)
TOLERANCES = st.builds(Tolerances, st.sampled_from([0.0, 0.1, 0.5]), st.sampled_from([0.0, 0.1, 0.5]))


def pod(name: str, phase: str, request_milli: int) -> Pod:
    is_deleting = phase == "deleting"
    written = {
        "metadata": {"name": name, "deletionTimestamp": LONG_AGO if is_deleting else None},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": f"{request_milli}m"}}}]},
        "status": {
            "phase": "Running" if is_deleting else phase,
            "startTime": LONG_AGO,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}],
        },
    }
    return msgspec.convert(written, Pod, dec_hook=dec_hook)


def about(rows: list[Row], current: int, tolerances: Tolerances) -> PassFacts:
    pods = [pod(f"p-{number}", phase, request) for number, (phase, _, request) in enumerate(rows)]
    return PassFacts(current, current, pods, tolerances, AutoscalerSettings(), NOW.timestamp())


def samples(rows: list[Row]) -> dict[str, MetricSample]:
    return {
        f"p-{number}": MetricSample(value, NOW.timestamp())
        for number, (_, value, _) in enumerate(rows)
        if value is not None
    }


def literal(rows: list[Row], current: int, target: int, tolerances: Tolerances, *, is_utilization: bool) -> int | None:
    """Section by section of the description of the algorithm; `None`: no replica count can be computed."""
    alive = [row for row in rows if row[0] not in ("Failed", "deleting")]
    unready = [row for row in alive if row[0] == "Pending"]
    missing = [row for row in alive if row[0] != "Pending" and row[1] is None]
    ready = [(value, request) for phase, value, request in alive if phase != "Pending" and value is not None]
    if not ready:
        return None

    def ratio(figures: list[tuple[int, int]]) -> float:
        used = sum(value for value, _ in figures)
        if is_utilization:
            return int(100 * used / sum(request for _, request in figures) + 1e-9) / target
        return (used // len(figures)) / target

    def is_near(one: float) -> bool:
        return 1.0 - tolerances.scale_down <= one <= 1.0 + tolerances.scale_up

    first = ratio(ready)
    if not missing and not (unready and first > 1):
        return current if is_near(first) else math.ceil(first * len(ready))
    figures = list(ready)
    for _, _, request in missing:
        if first < 1:
            figures.append((request * max(100, target) // 100 if is_utilization else target, request))
        elif first > 1:
            figures.append((0, request))
    if first > 1:
        figures += [(0, request) for _, _, request in unready]
    second = ratio(figures)
    if is_near(second) or (first < 1 < second) or (second < 1 < first):
        return current
    wanted = math.ceil(second * len(figures))
    if (second < 1 and wanted > current) or (second > 1 and wanted < current):
        return current
    return wanted


def replicas(found: Proposal | MetricFault) -> int | None:
    return None if isinstance(found, MetricFault) else found.replicas


@settings(max_examples=examples(300))
@given(ROWS, st.integers(1, 8), st.integers(1, 250), TOLERANCES)
def test_a_target_in_percent_gives_the_count_of_the_formula(
    rows: list[Row], current: int, target: int, tolerances: Tolerances
) -> None:
    found = utilization_proposal(samples(rows), "cpu", "", target, about(rows, current, tolerances))
    assert replicas(found) == literal(rows, current, target, tolerances, is_utilization=True)


@settings(max_examples=examples(300))
@given(ROWS, st.integers(1, 8), st.integers(1, 3000), TOLERANCES)
def test_a_target_as_an_average_gives_the_count_of_the_formula(
    rows: list[Row], current: int, target: int, tolerances: Tolerances
) -> None:
    found = average_proposal(samples(rows), "", target, about(rows, current, tolerances))
    assert replicas(found) == literal(rows, current, target, tolerances, is_utilization=False)


@settings(max_examples=examples(200))
@given(ROWS, st.integers(0, 8), st.integers(0, 9000), st.integers(1, 3000), TOLERANCES)
def test_a_value_of_a_whole_is_related_to_the_ready_pods(
    rows: list[Row], current: int, value: int, target: int, tolerances: Tolerances
) -> None:
    found = value_proposal(value, target, about(rows, current, tolerances))
    is_near = 1 - tolerances.scale_down <= value / target <= 1 + tolerances.scale_up
    if current == 0:
        wanted: int | None = math.ceil(value / target)
    elif is_near:
        wanted = current
    else:
        ready = sum(phase in ("Running", "deleting") for phase, _, _ in rows)
        wanted = math.ceil(value / target * ready) if rows else None
    assert replicas(found) == wanted


@settings(max_examples=examples(200))
@given(st.integers(0, 8), st.integers(0, 9000), st.integers(1, 3000), TOLERANCES)
def test_a_value_per_pod_is_related_to_the_reported_size(
    reported: int, value: int, target: int, tolerances: Tolerances
) -> None:
    found = per_pod_proposal(value, target, about([], reported, tolerances))
    is_near = bool(reported) and 1 - tolerances.scale_down <= value / (target * reported) <= 1 + tolerances.scale_up
    assert found.replicas == (reported if is_near else math.ceil(value / target))
