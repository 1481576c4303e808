"""A request for more quota is granted until a time, and ends then; each step is an Event. All in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.kind import CONFIG_MAPS
from shoal.client.served_writer import ServedWriter
from shoal.policy.tenants.team import Team, read_team
from shoal.units.errors import UserError
from shoal.wiring.tenants.applying import TenantObjects
from shoal.wiring.tenants.quota_requests import QUOTAS, QuotaRequests

_HOUR_S = 3600


def _team(gpus: int = 8, **network: Any) -> Team:
    raw = {
        "apiVersion": "shoal.dev/v1alpha1",
        "kind": "Team",
        "metadata": {"name": "team-a"},
        "spec": {"quota": {"gpus": gpus}, "network": network},
    }
    return read_team(raw)


async def _tenants(cluster: SmallCluster) -> tuple[TenantObjects, QuotaRequests]:
    writer = await ServedWriter.of(cluster.api)
    return TenantObjects(cluster.api, writer, cluster.clock), QuotaRequests(cluster.api, writer, cluster.clock)


async def _gpus(cluster: SmallCluster) -> str:
    hard = (await cluster.get(QUOTAS, "team-quota", "team-a"))["spec"]["hard"]
    return str(hard["requests.nvidia.com/gpu"])


async def _reasons(cluster: SmallCluster) -> set[str]:
    return {event["reason"] for event in await cluster.events("team-quota")}


@virtual
async def test_a_grant_ends_when_its_time_is_over(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        tenants, requests = await _tenants(cluster)
        await tenants.apply(_team(), adopts=False)
        name = await requests.ask("team-a", {"nvidia.com/gpu": 24}, _HOUR_S, "paper")
        grant = await requests.approve("team-a", name, None)
        assert (grant.asked_by, grant.granted_by, grant.until) == ("admin", "admin", "2026-01-01T01:00:00Z")
        assert await _gpus(cluster) == "24"
        # Events are kept for an hour.
        assert await _reasons(cluster) == {"QuotaRequested", "QuotaGranted"}
        await cluster.pass_time(_HOUR_S - 60)
        assert await requests.expire() == []
        assert await _gpus(cluster) == "24"
        await cluster.pass_time(120)
        assert [namespace for namespace, _ in await requests.expire()] == ["team-a"]
        assert await _gpus(cluster) == "8"
        assert "QuotaGrantEnded" in await _reasons(cluster)


@virtual
async def test_a_grant_that_is_over_does_not_survive_the_next_apply(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        tenants, requests = await _tenants(cluster)
        await tenants.apply(_team(), adopts=False)
        name = await requests.ask("team-a", {"nvidia.com/gpu": 24}, _HOUR_S, "")
        await requests.approve("team-a", name, None)
        await tenants.apply(_team(), adopts=False)
        assert await _gpus(cluster) == "24"
        await cluster.pass_time(2 * _HOUR_S)
        await tenants.apply(_team(), adopts=False)
        assert await _gpus(cluster) == "8"


@virtual
async def test_an_end_that_is_no_time_is_not_granted(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        tenants, requests = await _tenants(cluster)
        await tenants.apply(_team(), adopts=False)
        name = await requests.ask("team-a", {"nvidia.com/gpu": 24}, _HOUR_S, "")
        await cluster.patch(CONFIG_MAPS, name, {"data": {"until": "never"}}, namespace="team-a")
        with pytest.raises(UserError, match="is no time"):
            await requests.approve("team-a", name, None)
        assert await _gpus(cluster) == "8"


@virtual
async def test_an_end_of_another_form_is_written_as_the_api_writes_times(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        tenants, requests = await _tenants(cluster)
        await tenants.apply(_team(), adopts=False)
        name = await requests.ask("team-a", {"nvidia.com/gpu": 24}, _HOUR_S, "")
        await cluster.patch(CONFIG_MAPS, name, {"data": {"until": "2026-1-1T2:0:0Z"}}, namespace="team-a")
        assert (await requests.approve("team-a", name, None)).until == "2026-01-01T02:00:00Z"


@virtual
async def test_a_grant_keeps_a_bounded_part_of_what_members_wrote_so_that_it_can_end(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        tenants, requests = await _tenants(cluster)
        await tenants.apply(_team(), adopts=False)
        name = await requests.ask("team-a", {"nvidia.com/gpu": 24}, _HOUR_S, "x" * 261_400)
        await cluster.patch(CONFIG_MAPS, name, {"data": {"askedBy": "y" * 1000}}, namespace="team-a")
        grant = await requests.approve("team-a", name, None)
        assert (grant.reason, grant.asked_by) == ("x" * 256, "y" * 256)
        await cluster.pass_time(2 * _HOUR_S)
        assert len(await requests.expire()) == 1
        assert await _gpus(cluster) == "8"


@virtual
async def test_a_team_that_is_applied_during_a_grant_has_its_new_quota_afterwards(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        tenants, requests = await _tenants(cluster)
        await tenants.apply(_team(), adopts=False)
        name = await requests.ask("team-a", {"nvidia.com/gpu": 24}, _HOUR_S, "")
        await requests.approve("team-a", name, None)
        await tenants.apply(_team(16), adopts=False)
        assert await _gpus(cluster) == "24"
        await cluster.pass_time(2 * _HOUR_S)
        await requests.expire()
        assert await _gpus(cluster) == "16"


@virtual
async def test_what_a_team_has_no_longer_is_removed(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        tenants, _ = await _tenants(cluster)
        await tenants.apply(_team(webhookPorts=[9443]), adopts=False)
        done = await tenants.apply(_team(), adopts=False)
        assert [one.object for one in done if one.change == "deleted"] == ["NetworkPolicy team-a/allow-webhooks"]
