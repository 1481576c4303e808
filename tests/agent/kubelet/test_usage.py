"""The usage of machine and pods is the difference of two measurements by the time between them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from build.kubelet_on_cri import kubelet_on_cri
from shoal.agent.kubelet.process.cgroups import Cgroups
from shoal.agent.kubelet.process.process_usage import ProcessUse, all_processes, below, total
from shoal.agent.kubelet.process.runtime import ProcessRuntime
from shoal.agent.kubelet.runtime import Consumption, Launch, RunKey
from shoal.agent.kubelet.usage import MeasuredUse, UsageOfPods, consumption_of_machine, use_since
from shoal.embedded.kubelets.endpoint.node_figures import NodeStats
from shoal.embedded.kubelets.node_view import Usage
from shoal.wiring.this_machine_view import ThisMachineView


def test_a_rate_is_in_thousandths_of_a_processor() -> None:
    before, now = Consumption(100.0, 5.0, 7), Consumption(110.0, 7.5, 9)

    assert use_since(before, now) == MeasuredUse(250, 9, 7.5)
    assert use_since(now, now) is None
    assert use_since(Consumption(100.0, 9.0, 7), now) == MeasuredUse(0, 9, 7.5)


def test_descendants_count_with_the_ended_children_of_each() -> None:
    processes = {
        1: ProcessUse(0, 1.0, 1),
        2: ProcessUse(1, 2.0, 10),
        3: ProcessUse(2, 3.0, 100),
        4: ProcessUse(1, 4.0, 1000),
    }

    assert below(processes, 2) == {3}
    assert below(processes, 1) == {2, 3, 4}
    assert below(processes, 9) == set()
    assert total(processes, {2, 3, 9}) == (5.0, 110)


def test_proc_has_this_process() -> None:
    own = all_processes()[os.getpid()]

    assert own.parent == os.getppid()
    assert own.memory_bytes > 1 << 20


def test_the_machine_is_read_from_proc(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  100 50 50 900 40 10 10 0 0 0\ncpu0 1 1 1 1\n")
    (tmp_path / "meminfo").write_text("MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:   400 kB\n")
    ticks = os.sysconf("SC_CLK_TCK")

    assert consumption_of_machine(tmp_path, 7.0) == Consumption(7.0, 220 / ticks, 600 * 1024)
    assert consumption_of_machine(tmp_path / "none", 7.0) == Consumption(7.0, 0.0, 0)


async def test_a_real_process_is_measured_until_it_ends(tmp_path: Path) -> None:
    key, hold = RunKey(f"measured-{os.getpid()}", "main", 0), tmp_path / "hold"
    os.mkfifo(hold)
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    runtime = ProcessRuntime(tmp_path / "pods", Cgroups(tmp_path / "no-cgroups"))
    script = f"i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo > {ready}; read word < {hold}"
    await runtime.start(key, Launch(("sh", "-c", script), {"PATH": os.environ["PATH"]}, tmp_path))
    ready.read_text()

    used = (await runtime.consumption([key]))[key]

    assert used.cpu_s > 0
    assert used.memory_bytes > 100_000
    hold.write_text("done\n")
    await runtime.wait(key)
    assert await runtime.consumption([key]) == {}


@pytest.mark.slow
async def test_containers_are_measured_by_their_runtime(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        uid = await machine.create("busy", "serve")
        await machine.until_ready("busy")
        usage = UsageOfPods(machine.cluster.clock, machine.kubelet.all, tmp_path)
        view = ThisMachineView("machine", Usage(4000, 1 << 30))
        view.kubelet, view.measured = machine.kubelet, usage
        second, id_ = 1_000_000_000, next(iter(machine.cri.containers))
        await usage.measure()
        assert view.pod_usage() == []
        later_s = int(machine.cluster.clock.seconds()) + 1000

        machine.cri.used = {id_: (later_s * second, 10 * second, 5000)}
        await usage.measure()
        machine.cri.used = {id_: ((later_s + 10) * second, 15 * second, 6000)}
        await usage.measure()

        assert usage.of(RunKey(uid, "main", 0)) == MeasuredUse(500, 6000, 15.0)
        where = f'container="main",id="",image="app:1",name="{id_}",namespace="default",pod="busy"'
        text = NodeStats().cadvisor(view, later_s).decode()
        assert f'\ncontainer_cpu_usage_seconds_total{{{where},cpu="total"}} 15' in text
        assert f"\ncontainer_memory_working_set_bytes{{{where}}} 6000" in text
        assert f"\ncontainer_start_time_seconds{{{where}}} " in text
        assert "container_memory_rss" not in text
        names = 'container="main",namespace="default",pod="busy"'
        text = NodeStats().resource(view, later_s).decode()
        assert f"\ncontainer_cpu_usage_seconds_total{{{names}}} 15" in text
        assert f"\ncontainer_memory_working_set_bytes{{{names}}} 6000" in text
        [(pod, used)] = view.pod_usage()
        assert (pod["metadata"]["name"], used) == ("busy", {"main": Usage(500, 6000, 15.0)})


@pytest.mark.slow
async def test_probes_of_containers_are_counted_by_their_result(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        good, bad = ({"exec": {"command": [word]}, "periodSeconds": 1} for word in ("true", "false"))
        probes = {"readinessProbe": good, "livenessProbe": {**bad, "failureThreshold": 1000}}
        uid = await machine.create("probed", "serve", container=probes)
        await machine.until_ready("probed")
        view = ThisMachineView("machine", Usage(4000, 1 << 30))
        view.kubelet = machine.kubelet
        pod = machine.kubelet.by_uid(uid)
        assert pod is not None
        await machine.until(lambda: len(pod.probed) == 2)

        text = NodeStats().probes(view, machine.cluster.clock.seconds()).decode()

        names = f'prober_probe_total{{container="main",namespace="default",pod="probed",pod_uid="{uid}"'
        assert f'\n{names},probe_type="Readiness",result="successful"}} ' in text
        assert f'\n{names},probe_type="Liveness",result="failed"}} ' in text
        assert 'result="successful"}' not in text.partition('probe_type="Liveness"')[2].partition("\n")[0]
