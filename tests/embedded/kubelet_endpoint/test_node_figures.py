"""The paths of a kubelet that Prometheus and metrics-server read."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from build.endpoint_clients import Doors, doors_of
from build.fake_nodes import START_S, FakeNodes
from shoal.embedded.kubelets.endpoint.node_figures import NodeStats

STARTED = "2026-01-01T00:00:00Z"
POD = 'namespace="default",pod="web"'


@pytest.fixture
def nodes() -> FakeNodes:
    found = FakeNodes("n1")
    pod = found["n1"].run_pod("web", "main", "side")
    pod["spec"]["containers"][0]["livenessProbe"] = {"initialDelaySeconds": 5, "periodSeconds": 10}
    for status in pod["status"]["containerStatuses"]:
        status["state"] = {"running": {"startedAt": STARTED}}
    return found


@pytest.fixture
async def doors(nodes: FakeNodes) -> AsyncIterator[Doors]:
    async with doors_of(nodes) as found:
        yield found


async def test_the_kubelets_own_figures_stand_before_those_of_dcgm(doors: Doors) -> None:
    code, text = await doors.get("/metrics")
    assert code == 200
    assert "\nkubelet_running_pods 1\n" in text
    assert '\nkubelet_running_containers{container_state="running"} 2\n' in text
    assert '\nkubelet_node_name{node="n1"} 1\n' in text
    assert text.endswith((await doors.get("/metrics/dcgm"))[1])
    assert "# TYPE" in text.partition("DCGM_FI_DEV")[0]


async def test_the_paths_of_a_kubelet_are_there_and_those_it_has_not_are_not(doors: Doors) -> None:
    for path, name in (
        ("/metrics/resource", "pod_cpu_usage_seconds_total"),
        ("/metrics/cadvisor", "container_memory_working_set_bytes"),
        ("/metrics/probes", "prober_probe_total"),
    ):
        code, text = await doors.get(path)
        assert (code, f"\n{name}{{" in text) == (200, True), path
    assert (await doors.get("/metrics/slis"))[0] == 404


def test_processor_time_grows_with_the_time_that_a_container_runs(nodes: FakeNodes) -> None:
    figures = NodeStats()
    assert (
        value(
            figures.resource(nodes["n1"], START_S + 100), f'container_cpu_usage_seconds_total{{container="main",{POD}}}'
        )
        == 25
    )
    text = figures.resource(nodes["n1"], START_S + 160)
    assert value(text, f'container_cpu_usage_seconds_total{{container="main",{POD}}}') == 40
    assert value(text, f"pod_cpu_usage_seconds_total{{{POD}}}") == 80
    assert value(text, f"pod_memory_working_set_bytes{{{POD}}}") == 2 * (64 << 20)
    assert value(text, f'container_start_time_seconds{{container="side",{POD}}}') == START_S
    assert value(text, "resource_scrape_error") == 0


def test_the_processor_time_of_a_node_never_falls(nodes: FakeNodes) -> None:
    figures, node = NodeStats(), nodes["n1"]
    said = [value(figures.resource(node, START_S + at), "node_cpu_usage_seconds_total") for at in (0, 10, 30, 30)]
    assert said == [0, 15, 45, 45]


def test_cadvisor_names_containers_and_the_machine(nodes: FakeNodes) -> None:
    text = NodeStats().cadvisor(nodes["n1"], START_S + 100).decode()
    assert 'container_memory_rss{container="",id="/",image="",name="",namespace="",pod=""} 3221225472' in text
    assert 'container="side"' in text
    assert value(text.encode(), "machine_cpu_cores") == 4
    assert value(text.encode(), "machine_memory_bytes") == 16 << 30


@pytest.mark.parametrize(("after_s", "count"), [(4, None), (5, 1), (14, 1), (15, 2)])
def test_probes_are_counted_from_their_delay_on(nodes: FakeNodes, after_s: int, count: int | None) -> None:
    text = NodeStats().probes(nodes["n1"], START_S + after_s)
    name = f'prober_probe_total{{container="main",{POD},pod_uid="uid-web",probe_type="Liveness",result="successful"}}'
    assert (value(text, name) if name.encode() in text else None) == count


def value(text: bytes, name: str) -> float:
    (line,) = [line for line in text.decode().splitlines() if line.startswith(f"{name} ")]
    return float(line.rpartition(" ")[2])
