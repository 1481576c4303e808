"""Which definitions the server converts by itself: those it provided, as long as nobody else is named for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, KUEUE_TOPOLOGIES, WORKLOADS
from shoal.client.kind import DEFINITIONS
from shoal.client.refusals import InvalidError
from shoal.embedded.apiserver.foreign.converting import kueue_definitions
from shoal.embedded.apiserver.foreign.provided import LABEL, converter_of

Obj = dict[str, Any]
OLD = CLUSTER_QUEUES._replace(version="v1beta1")
QUEUES = "clusterqueues.kueue.x-k8s.io"


async def provide(cluster: SmallCluster) -> None:
    for definition in kueue_definitions():
        await cluster.create(DEFINITIONS, definition)
    await cluster.pass_time(2)


async def cohorts(cluster: SmallCluster) -> list[Any]:
    """As the new version calls it, and as the old one does."""
    specs = [(await cluster.get(kind, "q"))["spec"] for kind in (CLUSTER_QUEUES, OLD)]
    return [(spec.get("cohortName"), spec.get("cohort")) for spec in specs]


@virtual
async def test_whoever_takes_our_label_away_takes_the_conversion_with_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await provide(cluster)
        await cluster.create(OLD, {"metadata": {"name": "q"}, "spec": {"cohort": "x"}})
        assert await cohorts(cluster) == [("x", None), (None, "x")]
        await cluster.patch(DEFINITIONS, QUEUES, {"metadata": {"labels": {LABEL: None}}})
        await cluster.pass_time(1)
        assert await cohorts(cluster) == [("x", None), ("x", None)]
        await cluster.patch(DEFINITIONS, QUEUES, {"metadata": {"labels": {LABEL: "kueue"}}})
        await cluster.pass_time(1)
        assert await cohorts(cluster) == [("x", None), (None, "x")]


@virtual
async def test_kinds_that_were_older_once_keep_their_versions(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await provide(cluster)
        first = KUEUE_TOPOLOGIES._replace(version="v1alpha1")
        await cluster.create(first, {"metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": "rack"}]}})
        assert (await cluster.get(KUEUE_TOPOLOGIES, "t"))["spec"] == {"levels": [{"nodeLabel": "rack"}]}


@virtual
async def test_what_cannot_be_converted_is_refused_for_what_is_wrong_with_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await provide(cluster)
        spec = {"priorityClassName": "high", "priorityClassSource": "nobody"}
        with pytest.raises(InvalidError, match="priorityClassSource"):
            await cluster.create(WORKLOADS._replace(version="v1beta1"), {"metadata": {"name": "w"}, "spec": spec})


def test_a_webhook_goes_before_the_server_itself() -> None:
    service = {"service": {"namespace": "a", "name": "b"}}
    for with_webhook, without in zip(kueue_definitions(service), kueue_definitions(), strict=True):
        assert converter_of(with_webhook) is None
        differs = without["spec"]["names"]["kind"] in {
            "ClusterQueue",
            "LocalQueue",
            "Workload",
            "AdmissionCheck",
            "MultiKueueCluster",
        }
        assert (converter_of(without) is not None) == differs


def test_a_definition_of_another_group_is_not_converted_whatever_its_label_says() -> None:
    definition = next(one for one in kueue_definitions() if one["metadata"]["name"] == QUEUES)
    definition["spec"]["group"] = "example.com"
    assert converter_of(definition) is None
