"""Logs of Shoal's own containers are collected, those of ended ones too, without secrets; refusals are named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.kind import PODS
from shoal.client.refusals import BadRequestError
from shoal.store.support_bundle.archive import BundleArchive
from shoal.store.support_bundle.collecting import BundleSource

LOG = b"started\nlogin with Bearer PLANTEDzq8vK2mPx9LtR4wN\nready \xff\n"


class Requests:
    def __init__(self) -> None:
        self.paths: list[str] = []

    async def ask(self, method: str, path: str, query: Mapping[str, str]) -> bytes:
        assert method == "GET"
        assert int(query["limitBytes"]) <= 2 << 20
        self.paths.append(path)
        if query.get("previous") == "true" and query["container"] == "metrics":
            raise BadRequestError("previous terminated container not found")
        return LOG


async def _add_pod(cluster: SmallCluster, name: str, labels: dict[str, str]) -> None:
    containers = [{"name": each, "image": "x"} for each in ("main", "metrics")]
    await cluster.create(PODS, {"metadata": {"name": name, "labels": labels}, "spec": {"containers": containers}})
    statuses = [
        {"name": each, "restartCount": 1, "ready": True, "image": "x", "imageID": "x"} for each in ("main", "metrics")
    ]
    await cluster.patch(PODS, name, {"status": {"containerStatuses": statuses}}, "status")


@virtual
async def test_logs_of_own_pods_alone_are_collected(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _add_pod(cluster, "shoal-0", {"app.kubernetes.io/name": "shoal"})
        await _add_pod(cluster, "train-0", {"app": "train"})
        archive, requests = BundleArchive("b", 1 << 20, 0), Requests()
        await BundleSource(cluster.api, requests, archive).logs()
        assert sorted(archive.files) == [
            "logs/default/shoal-0/main.log",
            "logs/default/shoal-0/main.previous.log",
            "logs/default/shoal-0/metrics.log",
        ]
        assert [one.name for one in archive.left_out] == ["logs/default/shoal-0/metrics.previous.log"]
        assert archive.left_out[0].why == "previous terminated container not found"
        text = archive.files["logs/default/shoal-0/main.log"].decode()
        assert "PLANTED" not in text
        assert "login with Bearer <redacted>" in text
        assert not [path for path in requests.paths if "train-0" in path or "secret" in path]
