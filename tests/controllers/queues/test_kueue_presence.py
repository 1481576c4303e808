"""Kueue's configuration and controllers are looked for only in the namespace in which Kueue is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.live_schedulers import add_node, is_bound
from build.queue_admission import (
    add_flavor,
    add_queue,
    configure,
    is_so,
    queued_cluster,
    said,
    start_admission,
    start_pods,
    submit,
    until_so,
)
from build.scripted_api import ScriptedApi
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.item import Item
from shoal.client.kind import DEPLOYMENTS, LEASES, NAMESPACES, Kind
from shoal.client.presence import KAI, KUEUE, VOLCANO, Presence, Sign
from shoal.client.refusals import ForbiddenError
from shoal.client.write_through import WriteThroughApi

_LEASE = "c1f6bfd2.kueue.x-k8s.io"


async def _renewed(cluster: SmallCluster, name: str, namespace: str, lasts_s: int = 15) -> None:
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": lasts_s, "renewTime": cluster.clock.micro_text()}
    await cluster.create(NAMESPACES, {"metadata": {"name": namespace}})
    await cluster.create(LEASES, {"metadata": {"name": name}, "spec": spec}, namespace)


async def _deployed(cluster: SmallCluster, name: str, namespace: str) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "pause"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await cluster.create(NAMESPACES, {"metadata": {"name": namespace}})
    await cluster.create(DEPLOYMENTS, {"metadata": {"name": name}, "spec": spec}, namespace)
    await cluster.patch(DEPLOYMENTS, name, {"status": {"replicas": 1, "readyReplicas": 1}}, "status", namespace)


@virtual
async def test_a_config_map_of_a_tenant_does_not_change_the_quota_of_the_cluster(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        process = start_admission(cluster)
        await add_node(cluster, "n1", cpu="64")
        await add_flavor(cluster)
        await add_queue(cluster, cpu="4")
        await configure(cluster, "kueue-system", "waitForPodsReady: {timeout: 5m}")
        await cluster.until(lambda: process.admission.kueue.queues.settings.wait_for_pods_ready)
        await configure(cluster, "a-tenant", "resources: {excludeResourcePrefixes: [cpu]}")
        await submit(cluster, "greedy", cpu="16", count=3)
        await cluster.pass_time(10)
        assert process.admission.kueue.queues.settings.wait_for_pods_ready
        assert (await said(cluster, "greedy", "QuotaReserved"))[0] == "False"


@virtual
async def test_a_lease_and_a_deployment_of_a_tenant_do_not_stop_admission(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        process = start_admission(cluster)
        await add_node(cluster, "n1", cpu="64")
        await add_flavor(cluster)
        await add_queue(cluster)
        await _renewed(cluster, _LEASE, "a-tenant", lasts_s=3600)
        await _deployed(cluster, "kueue-controller-manager", "b-tenant")
        await cluster.pass_time(60)
        await submit(cluster, "w")
        await until_so(cluster, "w")
        assert not process.admission.presence.is_there


@pytest.mark.parametrize("sign", [KUEUE, VOLCANO, KAI], ids=lambda sign: sign.project)
@virtual
async def test_kueue_is_found_only_in_its_own_namespace(tmp_path: Path, sign: Sign) -> None:
    async with queued_cluster(tmp_path) as cluster:
        presence, elsewhere = (Presence(cluster.context(), sign, place) for place in ("", "own-place"))
        await _renewed(cluster, sign.leases[0], sign.namespace)
        await _deployed(cluster, sign.deployments[0], "own-place")
        await presence.look()
        assert presence.is_there
        await cluster.pass_time(300)
        for one in (presence, elsewhere):
            await one.look()
        assert (presence.is_there, elsewhere.is_there) == (False, True)


class WithoutLeases(WriteThroughApi):
    """May not read Leases, and neither Deployments if told so."""

    refused: tuple[Kind, ...] = (LEASES,)

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        if kind in self.refused:
            raise ForbiddenError("not allowed")
        return await super().get(kind, namespace, name)


@virtual
async def test_without_permission_for_one_sign_of_kueue_the_other_one_counts(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        await _deployed(cluster, "kueue-controller-manager", "kueue-system")
        api = WithoutLeases(cluster.api, cluster.informers)
        presence = Presence(cluster.context(api=api), KUEUE)
        await presence.look()
        assert presence.is_there
        api.refused = (LEASES, DEPLOYMENTS)
        await cluster.delete(DEPLOYMENTS, "kueue-controller-manager", namespace="kueue-system")
        await presence.look()
        assert presence.is_there, "nobody has answered"
        api.refused = (LEASES,)
        await presence.look()
        assert not presence.is_there


@virtual
async def test_an_unreadable_lease_does_not_count(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        api = ScriptedApi()
        spec = {"holderIdentity": "x", "renewTime": "0000-01-01T00:00:00.000000Z"}
        await api.create(LEASES, {"metadata": {"name": _LEASE, "namespace": "kueue-system"}, "spec": spec})
        presence = Presence(cluster.context(api=api), KUEUE)
        await presence.look()
        assert not presence.is_there


@virtual
async def test_when_kueue_starts_later_no_places_are_kept_any_more(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        process = start_admission(cluster)
        await add_node(cluster, "n1", cpu="4")
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "gang", cpu="2", count=2)
        await until_so(cluster, "gang")
        assert process.admission.placeholders.count("default/gang") == 2
        await _renewed(cluster, _LEASE, "kueue-system", lasts_s=86_400)
        await cluster.until(lambda: process.admission.presence.is_there)
        await start_pods(cluster, "gang", 2, cpu="2")
        await cluster.until(lambda: is_bound(cluster, "gang-0", "gang-1"))
        assert process.admission.placeholders.count("default/gang") == 0
        assert await is_so(cluster, "gang"), "the Workload is Kueue's to change"
