"""The role of simulated kubelets is as large as what they do, and no larger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from build.fleets import machine, pod
from build.rbac import actor
from build.readers import FixedReader
from build.small_clusters import START_S, SmallCluster
from build.virtual_time import virtual
from shoal.client.clock import LoopClock
from shoal.client.context import Context
from shoal.client.kind import LEASES, NODES, PODS
from shoal.client.recorder import Recorder
from shoal.client.write_through import WriteThroughApi
from shoal.embedded.apiserver.bootstrap.default_roles import default_roles
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.rbac import Rbac
from shoal.embedded.apiserver.server.control_plane import open_plane
from shoal.embedded.apiserver.settings import Settings
from shoal.embedded.apiserver.storage.memory import MemoryStorage
from shoal.embedded.kubelets.fleet import Fleet

_FLEET = actor("system:shoal:fleet", "system:authenticated")


@asynccontextmanager
async def _ruled(folder: Path) -> AsyncIterator[SmallCluster]:
    """A cluster with RBAC and a fleet of one node that has no rights but its own."""
    clock = LoopClock(START_S, 1.0)
    settings = Settings(None, folder / "kubeconfig", authorization="rbac")
    plane = await open_plane(settings, ("127.0.0.1", 1), MemoryStorage(), clock)
    cluster = SmallCluster(plane, clock, 1)
    api = InsideApi(plane, _FLEET, "kubelet")
    pen = Recorder(api, clock, "kubelet")
    context = Context("kubelet", WriteThroughApi(api, cluster.informers), cluster.informers, clock, cluster.draw, pen)
    works = (cluster.informers.run(), Fleet(context, [machine(gpus=1)]).run(), pen.run())
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await cluster.pass_time(1)
        yield cluster
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await plane.close()


@virtual
async def test_with_its_own_role_alone_a_fleet_runs_pods_beats_and_carries_out_faults(tmp_path: Path) -> None:
    async with _ruled(tmp_path) as cluster:
        await cluster.create(PODS, pod("work", gpus=1, restartPolicy="Never"))
        await cluster.create(PODS, pod("service"))
        await cluster.pass_time(15)
        assert {one["metadata"]["name"]: one["status"]["phase"] for one in await cluster.pods()} == {
            "work": "Succeeded",
            "service": "Running",
        }
        await cluster.delete(PODS, "service")
        await cluster.pass_time(5)
        assert [one["metadata"]["name"] for one in await cluster.pods()] == ["work"]
        lease = (await cluster.get(LEASES, "node-0", "kube-node-lease"))["spec"]["renewTime"]
        assert lease > "2026-01-01T00:00:10Z"
        for kind in ("reboot", "spot-interrupt"):
            fault = f'{{"kind": "{kind}", "id": "{kind}"}}'
            await cluster.patch(NODES, "node-0", {"metadata": {"annotations": {"shoal.dev/fault": fault}}})
            await cluster.pass_time(60)
            assert ("shoal.dev/fault" in (await cluster.get(NODES, "node-0"))["metadata"]["annotations"]) == (
                kind == "spot-interrupt"
            )
        await cluster.pass_time(120)
        assert await cluster.all(NODES) == []
        said = {event["reason"] for event in await cluster.events("node-0")}
        assert {"Starting", "Rebooted", "SpotInterruption"} <= said
        assert "FaultFailed" not in said


@pytest.mark.parametrize(
    "asked",
    [
        RequestInfo("list", "", "v1", "secrets"),
        RequestInfo("get", "", "v1", "secrets", namespace="kube-system", name="any"),
        RequestInfo("create", "", "v1", "serviceaccounts", "token", namespace="kube-system", name="any"),
        RequestInfo("create", "", "v1", "pods", namespace="kube-system"),
        RequestInfo("update", "", "v1", "nodes", name="any"),
        RequestInfo("create", "certificates.k8s.io", "v1", "certificatesigningrequests"),
    ],
)
def test_what_runs_no_programs_may_not_act_for_those_who_do(asked: RequestInfo) -> None:
    rbac = Rbac(FixedReader(*(seed.obj for seed in default_roles())))
    assert not rbac.allows(_FLEET, asked).allowed
    assert rbac.allows(_FLEET, RequestInfo("patch", "", "v1", "pods", "status", namespace="a", name="b")).allowed
