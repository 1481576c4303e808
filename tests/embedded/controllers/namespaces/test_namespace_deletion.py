"""A deleted namespace is emptied, tells what keeps it, and goes."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

from build.small_clusters import SmallCluster, small_cluster
from build.stormy_api import CALM, STORM, StormyApi
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS, JOBS, NAMESPACES, PODS, SECRETS, Kind
from shoal.client.port import Deletion, ServedKind
from shoal.client.refusals import BusyError, NotFoundError
from shoal.embedded.controllers.namespaces.controller import namespace_controller


async def _fill(cluster: SmallCluster, kind: Kind, name: str, **meta: object) -> None:
    await cluster.create(kind, {"metadata": {"name": name, **meta}}, "doomed")


async def _is_gone(cluster: SmallCluster) -> bool:
    try:
        await cluster.get(NAMESPACES, "doomed")
    except NotFoundError:
        return True
    return False


async def _conditions(cluster: SmallCluster) -> dict[str, tuple[str, str, str]]:
    found = (await cluster.get(NAMESPACES, "doomed"))["status"]["conditions"]
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in found}


def _pod(grace_s: int) -> Obj:
    spec = {"containers": [{"name": "main", "image": "i"}], "terminationGracePeriodSeconds": grace_s, "nodeName": "n"}
    return {"metadata": {"name": "pod"}, "spec": spec}


def _job() -> Obj:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}}
    return {"metadata": {"name": "job"}, "spec": {"template": template}}


async def _let_go(cluster: SmallCluster, kind: Kind, name: str) -> None:
    with contextlib.suppress(BusyError):
        await cluster.patch(kind, name, {"metadata": {"finalizers": None}}, namespace="doomed")


@virtual
async def test_all_kinds_are_emptied_and_the_namespace_goes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [namespace_controller]) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "doomed"}})
        await _fill(cluster, CONFIG_MAPS, "map")
        await _fill(cluster, SECRETS, "secret")
        await cluster.create(JOBS, _job(), "doomed")
        await cluster.delete(NAMESPACES, "doomed")
        await cluster.until(lambda: _is_gone(cluster))
        assert not await cluster.all(JOBS, "doomed")
        assert not await cluster.all(SECRETS, "doomed")


class _Undiscovered(StormyApi):
    """Somebody's server of more kinds is down."""

    is_down = True

    async def served(self) -> tuple[ServedKind, ...]:
        if self.is_down:
            raise BusyError("the server of x.io/v1 does not answer")
        return await super().served()


@virtual
async def test_what_is_known_goes_while_a_group_is_down_and_the_namespace_waits(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        api = _Undiscovered(cluster.api, cluster.clock, random.Random(1), CALM)
        cluster.start(namespace_controller, api=api)
        await cluster.create(NAMESPACES, {"metadata": {"name": "doomed"}})
        await _fill(cluster, CONFIG_MAPS, "map")
        await cluster.create(JOBS, _job(), "doomed")
        await cluster.delete(NAMESPACES, "doomed")
        await cluster.pass_time(60)
        assert not await cluster.all(CONFIG_MAPS, "doomed")
        assert not await cluster.all(JOBS, "doomed")
        words = "unable to retrieve the complete list of server APIs: the server of x.io/v1 does not answer"
        told = (await _conditions(cluster))["NamespaceDeletionDiscoveryFailure"]
        assert told == ("True", "DiscoveryFailed", words)
        api.is_down = False
        await cluster.until(lambda: _is_gone(cluster), 120)


@virtual
async def test_pods_end_gracefully_before_anything_they_use(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [namespace_controller]) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "doomed"}})
        await _fill(cluster, CONFIG_MAPS, "map")
        await cluster.create(PODS, _pod(grace_s=30), "doomed")
        await cluster.delete(NAMESPACES, "doomed")
        await cluster.pass_time(20)
        pod = await cluster.get(PODS, "pod", "doomed")
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
        assert "deletionTimestamp" not in (await cluster.get(CONFIG_MAPS, "map", "doomed"))["metadata"]
        words = "Some resources are remaining: pods. has 1 resource instances"
        assert (await _conditions(cluster))["NamespaceContentRemaining"] == ("True", "SomeResourcesRemain", words)
        await cluster.delete(PODS, "pod", Deletion(grace_s=0), "doomed")
        await cluster.until(lambda: _is_gone(cluster))


@virtual
async def test_what_finalizers_hold_is_told_until_they_let_go(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [namespace_controller]) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "doomed"}})
        await _fill(cluster, CONFIG_MAPS, "one", finalizers=["example.com/hold"])
        await _fill(cluster, CONFIG_MAPS, "two", finalizers=["example.com/hold"])
        await cluster.delete(NAMESPACES, "doomed")
        await cluster.pass_time(60)
        told = await _conditions(cluster)
        assert told == {
            "NamespaceDeletionDiscoveryFailure": (
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            "NamespaceDeletionGroupVersionParsingFailure": (
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            "NamespaceDeletionContentFailure": (
                "False",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            "NamespaceContentRemaining": (
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 2 resource instances",
            ),
            "NamespaceFinalizersRemaining": (
                "True",
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances",
            ),
        }
        await _let_go(cluster, CONFIG_MAPS, "one")
        await _let_go(cluster, CONFIG_MAPS, "two")
        await cluster.until(lambda: _is_gone(cluster))


@virtual
async def test_a_finalizer_of_somebody_else_keeps_an_empty_namespace(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [namespace_controller]) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "doomed", "finalizers": ["example.com/hold"]}})
        await cluster.delete(NAMESPACES, "doomed")
        await cluster.pass_time(60)
        left = await cluster.get(NAMESPACES, "doomed")
        assert not left["spec"].get("finalizers")
        assert left["status"]["phase"] == "Terminating"


@virtual
async def test_a_controller_that_starts_later_goes_on(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "doomed"}})
        await _fill(cluster, CONFIG_MAPS, "map")
        await cluster.delete(NAMESPACES, "doomed")
        await cluster.pass_time(60)
        assert not await _is_gone(cluster)
        cluster.start(namespace_controller)
        await cluster.until(lambda: _is_gone(cluster))


@virtual
async def test_a_namespace_goes_in_a_storm_too(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "doomed"}})
        for number in range(20):
            await _fill(cluster, CONFIG_MAPS, f"map-{number}")
        await cluster.create(PODS, _pod(grace_s=0), "doomed")
        storm = StormyApi(cluster.api, cluster.clock, random.Random(5), STORM)
        cluster.start(namespace_controller, api=storm)
        await cluster.delete(NAMESPACES, "doomed")
        await cluster.until(lambda: _is_gone(cluster), within_s=1800)
        assert storm.happened
        assert not await cluster.all(CONFIG_MAPS, "doomed")
