"""Kueue's kinds where no webhook converts: a server then takes v1beta1 for v1beta2 by its name, old words and all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.api.kueue.cluster_queues import ClusterQueue
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES
from shoal.client.informer import Informer
from shoal.client.item import Item, Obj
from shoal.client.kind import DEFINITIONS
from shoal.client.kueue_versions import KueueVersionsApi
from shoal.client.port import Patch
from shoal.embedded.apiserver.foreign.converting import kueue_definitions
from shoal.store.snapshot.reading import read_snapshot
from shoal.store.watched.reading import value_of

_OLD = CLUSTER_QUEUES._replace(version="v1beta1")
_SPEC: Obj = {"cohort": "shared", "admissionChecks": ["prov"], "namespaceSelector": {}, "resourceGroups": []}


@asynccontextmanager
async def unconverted(folder: Path) -> AsyncIterator[SmallCluster]:
    """As a kube-apiserver is after `shoal crds | kubectl apply -f -`: only the embedded one knows our label."""
    async with small_cluster(folder) as cluster:
        for definition in kueue_definitions():
            del definition["metadata"]["labels"]
            await cluster.create(DEFINITIONS, definition)

        async def are_served() -> bool:
            return any(one.kind == CLUSTER_QUEUES for one in await cluster.api.served())

        await cluster.until(are_served)
        await cluster.create(_OLD, {"metadata": {"name": "cq"}, "spec": _SPEC})
        yield cluster


def read(item: Item) -> tuple[str, str, list[str]]:
    spec = value_of(CLUSTER_QUEUES, item, ClusterQueue).spec
    checks = [one.name for one in spec.admission_checks_strategy.admission_checks]
    return spec.cohort_name, spec.flavor_fungibility.when_can_borrow, checks


@virtual
async def test_what_people_wrote_in_the_older_version_is_what_they_meant(tmp_path: Path) -> None:
    async with unconverted(tmp_path) as cluster:
        stored = (await cluster.get(CLUSTER_QUEUES, "cq"))["spec"]
        assert (stored["cohort"], stored["flavorFungibility"]["whenCanBorrow"]) == ("shared", "Borrow")
        api = KueueVersionsApi(cluster.api)
        informer = Informer(api, CLUSTER_QUEUES, cluster.clock, cluster.draw)
        cluster.tasks.append(asyncio.ensure_future(informer.run()))
        await informer.synced()
        meant = ("shared", "MayStopSearch", ["prov"])
        assert [read(item) for item in informer] == [meant]
        assert read(await api.get(CLUSTER_QUEUES, "", "cq")) == meant
        await cluster.patch(CLUSTER_QUEUES, "cq", {"spec": {"cohortName": "other"}})
        await cluster.pass_time(1)
        assert [read(item)[0] for item in informer] == ["other"]


@virtual
async def test_a_snapshot_has_them_too(tmp_path: Path) -> None:
    async with unconverted(tmp_path) as cluster:
        snapshot = await read_snapshot(cluster.api)
        assert not snapshot.notes
        (queue,) = [one.document.value for one in snapshot.entries if isinstance(one.document.value, ClusterQueue)]
        assert queue.spec.cohort_name == "shared"


@virtual
async def test_a_status_is_written_beside_old_words(tmp_path: Path) -> None:
    async with unconverted(tmp_path) as cluster:
        api = KueueVersionsApi(cluster.api)
        written = await api.patch(
            CLUSTER_QUEUES, "", "cq", Patch("merge", {"status": {"pendingWorkloads": 2}}), "status"
        )
        assert read(written)[0] == "shared"
        assert (await cluster.get(CLUSTER_QUEUES, "cq"))["status"]["pendingWorkloads"] == 2
