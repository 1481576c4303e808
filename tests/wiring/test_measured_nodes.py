"""The usage of machines that joined is read from their kubelets, and is forgotten when they do not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from build.small_clusters import small_cluster
from shoal.client.kind import PODS
from shoal.embedded.kubelets.endpoint.metrics_api import MetricsApi
from shoal.embedded.kubelets.node_view import Usage
from shoal.units.errors import TemporaryError
from shoal.wiring.measured_nodes import AllNodes, JoinedUsage
from shoal.wiring.this_machine_view import ThisMachineView

SUMMARY = {
    "node": {
        "nodeName": "far",
        "cpu": {"time": "x", "usageNanoCores": 1_500_000_000},
        "memory": {"workingSetBytes": 7 << 20},
    },
    "pods": [
        {
            "podRef": {"name": "busy", "namespace": "default", "uid": "u"},
            "containers": [
                {"name": "main", "cpu": {"usageNanoCores": 250_000_000}, "memory": {"workingSetBytes": 1 << 20}}
            ],
        }
    ],
}


class Machines:
    """The kubelets of joined machines."""

    def __init__(self) -> None:
        self.pages = {"far": msgspec.json.encode(SUMMARY), "broken": b"no summary"}

    def connected(self) -> Sequence[str]:
        return ("far", "broken", "silent")

    async def page(self, node: str, path: str) -> bytes:
        assert path == "/stats/summary"
        if node not in self.pages:
            raise TemporaryError("it does not answer", 1.0)
        return self.pages[node]


async def test_the_figures_of_joined_machines_are_served_with_the_labels_of_their_pods(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, speed=100.0) as cluster:
        machines, context = Machines(), cluster.context()
        joined = JoinedUsage(machines, context.informers, cluster.clock)
        spec = {"containers": [{"name": "main", "image": "i"}]}
        await cluster.create(PODS, {"metadata": {"name": "busy", "labels": {"app": "x"}}, "spec": spec})
        await context.informers.synced((PODS,))
        running = asyncio.ensure_future(joined.run())
        api = MetricsApi(AllNodes(ThisMachineView("near", Usage(1, 1)), None, joined), lambda _: {})
        await cluster.until(lambda: joined.names() == ("far",))

        assert [one["metadata"]["name"] for one in api.node_metrics(0)] == ["near", "far"]
        [pod] = api.pod_metrics("", 0)
        assert pod["metadata"]["labels"] == {"app": "x"}
        assert pod["containers"] == [{"name": "main", "usage": {"cpu": "250m", "memory": "1024Ki"}}]

        del machines.pages["far"]
        await cluster.until(lambda: not joined.names(), within_s=600)
        running.cancel()
