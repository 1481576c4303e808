"""Exporters that are believed: only those that a tenant cannot create, and only about the devices of their own node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from build.recorders import RecorderRun
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.item import Item, item_of
from shoal.client.kind import NAMESPACES, PODS
from shoal.controllers.history.sampler import Exporter, is_trusted, read_exporter
from shoal.store.history.memory_tables import MemoryTables

DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "exporter", "uid": "d", "controller": True}


def _pod(owner: dict[str, Any] | None = DAEMON, **status: str) -> Item:
    meta = {
        "name": "x",
        "namespace": "gpu-operator",
        "uid": "u",
        "resourceVersion": "1",
        "labels": {"app": "nvidia-dcgm-exporter"},
        "ownerReferences": [] if owner is None else [owner],
    }
    status = {"phase": "Running", "podIP": "10.0.0.1", **status}
    return item_of(msgspec.json.encode({"metadata": meta, "spec": {"nodeName": "n"}, "status": status}))


def test_a_running_pod_of_a_daemon_set_is_the_exporter_of_its_node() -> None:
    assert read_exporter(_pod()) == Exporter("gpu-operator", "n", "http://10.0.0.1:9400/metrics")
    v6 = read_exporter(_pod(podIP="fd00::1"))
    assert v6 is not None
    assert v6.address == "http://[fd00::1]:9400/metrics"


@pytest.mark.parametrize(
    "pod", [_pod(None), _pod({**DAEMON, "kind": "Job"}), _pod(phase="Pending"), _pod(podIP="")], ids=str
)
def test_a_pod_that_no_daemon_set_controls_or_that_does_not_run_is_no_exporter(pod: Item) -> None:
    assert read_exporter(pod) is None


def test_exporters_count_in_namespaces_of_the_cluster_and_where_an_administrator_allows_them() -> None:
    assert is_trusted("gpu-operator", {})
    assert is_trusted("shoal-system", {})
    assert not is_trusted("team-b", {"app": "dcgm-exporter"})
    assert not is_trusted("monitoring", {"shoal.dev/exporters": "false"})
    assert is_trusted("monitoring", {"shoal.dev/exporters": "true"})


@virtual
async def test_only_exporters_that_count_are_asked(tmp_path: Path) -> None:
    asked: set[str] = set()

    async def fetch(address: str) -> str:
        asked.add(address)
        return ""

    async with small_cluster(tmp_path) as cluster:
        for name, labels in (("gpu-operator", {}), ("team-b", {}), ("monitoring", {"shoal.dev/exporters": "true"})):
            await cluster.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
        for number, space in enumerate(("gpu-operator", "team-b", "monitoring"), 1):
            meta = {"name": "x", "labels": {"app": "dcgm-exporter"}, "ownerReferences": [DAEMON]}
            spec = {"nodeName": "n", "containers": [{"name": "main", "image": "x"}]}
            await cluster.create(PODS, {"metadata": meta, "spec": spec}, space)
            ip = f"10.0.0.{number}"
            status = {"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}}
            await cluster.patch(PODS, "x", status, "status", space)
        run = RecorderRun(cluster, MemoryTables(), fetch)
        await cluster.pass_time(40)
        assert asked == {"http://10.0.0.1:9400/metrics", "http://10.0.0.3:9400/metrics"}
        await run.kill()
