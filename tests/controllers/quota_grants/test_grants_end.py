"""Grants of more quota end at their time by themselves, once, with a record, whatever the clock does meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from build.foreign_kinds import established
from build.jumping_clock import JumpingClock
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES
from shoal.client.kind import DEFINITIONS, NAMESPACES, RESOURCE_QUOTAS, Kind
from shoal.client.port import Api
from shoal.client.served import Served
from shoal.client.served_writer import ServedWriter
from shoal.controllers.quota_grants.controller import quota_grants_controller
from shoal.controllers.quota_grants.ending import end_grant
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.policy.tenants.grants import grant_of
from shoal.policy.tenants.labels import GRANT, LAST_GRANT, MANAGED_BY, TEAM_LABEL
from shoal.policy.tenants.team import read_team
from shoal.units.errors import ConflictError
from shoal.wiring.tenants.applying import TenantObjects
from shoal.wiring.tenants.quota_requests import QuotaRequests

_HOUR_S, _DAY_S = 3600, 86_400
GPU = "nvidia.com/gpu"


class _WithServed:
    """The controller, with the search for served kinds that `shoal run` does beside it."""

    def __init__(self, context: Context, clock: JumpingClock) -> None:
        own = msgspec.structs.replace(context, clock=clock)
        self.name = context.name
        self._served = Served(own)
        self._made = quota_grants_controller(own, self._served)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._served.run())
            group.create_task(self._made.run())


class Tenants:
    def __init__(self, cluster: SmallCluster, clock: JumpingClock) -> None:
        self.cluster = cluster
        self.clock = clock

    def start(self) -> None:
        def make(context: Context) -> Controller:
            return _WithServed(context, self.clock)

        self.cluster.start(make)

    async def kill(self) -> None:
        for task in self.cluster.tasks:
            task.cancel()
        await asyncio.gather(*self.cluster.tasks, return_exceptions=True)
        self.cluster.tasks.clear()

    async def apply(self, gpus: int = 8) -> None:
        raw = {
            "apiVersion": "shoal.dev/v1alpha1",
            "kind": "Team",
            "metadata": {"name": "team-a"},
            "spec": {"quota": {"gpus": gpus}},
        }
        writer = await ServedWriter.of(self.cluster.api)
        await TenantObjects(self.cluster.api, writer, self.cluster.clock).apply(read_team(raw), adopts=False)

    async def grant(self, gpus: int = 24, life_s: float = _HOUR_S) -> None:
        requests = QuotaRequests(self.cluster.api, await ServedWriter.of(self.cluster.api), self.cluster.clock)
        await requests.approve("team-a", await requests.ask("team-a", {GPU: gpus}, life_s, "paper"), None)

    async def gpus(self) -> tuple[str, str]:
        """Of the ResourceQuota and of the ClusterQueue."""
        quota = await self.cluster.get(RESOURCE_QUOTAS, "team-quota", "team-a")
        queue = await self.cluster.get(CLUSTER_QUEUES, "team-a")
        found = {
            one["name"]: one["nominalQuota"]
            for group in queue["spec"]["resourceGroups"]
            for flavor in group["flavors"]
            for one in flavor["resources"]
        }
        return str(quota["spec"]["hard"][f"requests.{GPU}"]), str(found[GPU])

    async def ended(self) -> int:
        return sum(event["reason"] == "QuotaGrantEnded" for event in await self.cluster.events("team-quota"))


@asynccontextmanager
async def tenants(folder: Path) -> AsyncIterator[Tenants]:
    """A team has 24 GPUs instead of 8, for an hour."""
    async with small_cluster(folder) as cluster:
        for one in definitions():
            if one["spec"]["group"] == "kueue.x-k8s.io":
                await cluster.create(DEFINITIONS, one)
        await established(cluster)
        made = Tenants(cluster, JumpingClock(cluster.clock))
        made.start()
        await made.apply()
        await made.grant()
        yield made


@virtual
async def test_a_grant_ends_at_its_time_in_quota_and_queue_with_an_event_and_a_record(tmp_path: Path) -> None:
    async with tenants(tmp_path) as found:
        await found.cluster.pass_time(_HOUR_S - 60)
        assert await found.gpus() == ("24", "24")
        await found.cluster.pass_time(120)
        assert await found.gpus() == ("8", "8")
        assert await found.ended() == 1
        notes = (await found.cluster.get(RESOURCE_QUOTAS, "team-quota", "team-a"))["metadata"]["annotations"]
        record = msgspec.json.decode(notes[LAST_GRANT])
        assert GRANT not in notes
        assert (record["askedBy"], record["grantedBy"], record["endedBy"]) == ("admin", "admin", "shoal run")
        assert record["endedAt"] >= record["until"]


@virtual
async def test_a_grant_that_is_over_when_shoal_starts_ends_then(tmp_path: Path) -> None:
    async with tenants(tmp_path) as found:
        await found.kill()
        await found.cluster.pass_time(_DAY_S)
        assert await found.gpus() == ("24", "24")
        found.start()
        await found.cluster.pass_time(60)
        assert await found.gpus() == ("8", "8")
        assert await found.ended() == 1


@virtual
async def test_a_clock_that_is_wrong_for_a_moment_ends_no_grant(tmp_path: Path) -> None:
    async with tenants(tmp_path) as found:
        # The controller looks again after ten minutes at most, and finds the wrong time.
        await found.cluster.pass_time(300)
        found.clock.ahead_s = _DAY_S
        await found.cluster.pass_time(305)
        found.clock.ahead_s = 0
        await found.cluster.pass_time(120)
        assert await found.gpus() == ("24", "24")
        await found.cluster.pass_time(_HOUR_S)
        assert await found.gpus() == ("8", "8")


@virtual
async def test_a_clock_that_jumps_back_delays_the_end_only(tmp_path: Path) -> None:
    async with tenants(tmp_path) as found:
        found.clock.ahead_s = -_HOUR_S
        await found.cluster.pass_time(_HOUR_S + 120)
        assert await found.gpus() == ("24", "24")
        found.clock.ahead_s = 0
        await found.cluster.pass_time(660)
        assert await found.gpus() == ("8", "8")
        assert await found.ended() == 1


@virtual
@pytest.mark.parametrize("after_s", [10.0, 29.9, 30.0, 30.1])
async def test_a_successor_ends_what_a_killed_process_began(tmp_path: Path, after_s: float) -> None:
    async with tenants(tmp_path) as found:
        await found.cluster.pass_time(_HOUR_S + after_s)
        await found.kill()
        found.start()
        await found.cluster.pass_time(120)
        assert await found.gpus() == ("8", "8")


@virtual
async def test_a_queue_that_was_changed_before_a_kill_is_no_obstacle(tmp_path: Path) -> None:
    async with tenants(tmp_path) as found:
        await found.kill()
        queue = await found.cluster.get(CLUSTER_QUEUES, "team-a")
        for group in queue["spec"]["resourceGroups"]:
            for flavor in group["flavors"]:
                for one in flavor["resources"]:
                    one["nominalQuota"] = "8"
        await found.cluster.patch(CLUSTER_QUEUES, "team-a", {"spec": queue["spec"]})
        await found.cluster.pass_time(_DAY_S)
        found.start()
        await found.cluster.pass_time(60)
        assert await found.gpus() == ("8", "8")
        assert await found.ended() == 1


@virtual
async def test_a_team_that_is_applied_during_a_grant_has_its_new_quota_in_the_queue_too(tmp_path: Path) -> None:
    async with tenants(tmp_path) as found:
        await found.apply(16)
        assert await found.gpus() == ("24", "24")
        await found.cluster.pass_time(_HOUR_S + 60)
        assert await found.gpus() == ("16", "16")


@virtual
@pytest.mark.parametrize("labels", [{MANAGED_BY: None}, {TEAM_LABEL: "team-b"}], ids=["unmanaged", "other-team"])
@pytest.mark.parametrize("kind", [NAMESPACES, CLUSTER_QUEUES], ids=["namespace", "queue"])
async def test_a_queue_is_not_changed_if_its_team_is_not_proved(
    tmp_path: Path, kind: Kind, labels: dict[str, str | None]
) -> None:
    async with tenants(tmp_path) as found:
        await found.cluster.patch(kind, "team-a", {"metadata": {"labels": labels}})
        await found.cluster.pass_time(_HOUR_S + 60)
        assert await found.gpus() == ("8", "24")
        assert await found.ended() == 1


@virtual
async def test_a_quota_of_another_namespace_changes_no_queue(tmp_path: Path) -> None:
    async with tenants(tmp_path) as found:
        quota = await found.cluster.get(RESOURCE_QUOTAS, "team-quota", "team-a")
        meta = quota["metadata"]
        forged = msgspec.json.decode(meta["annotations"][GRANT])
        forged |= {"until": "2026-01-01T00:10:00Z", "formerQueue": {"default": {GPU: "999"}}}
        notes = {GRANT: msgspec.json.encode(forged).decode()}
        copy = {"name": "team-quota", "namespace": "default", "labels": meta["labels"], "annotations": notes}
        await found.cluster.create(RESOURCE_QUOTAS, {"metadata": copy, "spec": quota["spec"]})
        await found.cluster.pass_time(1200)
        assert await found.gpus() == ("24", "24")


class _Interrupted:
    """An API before whose first patch of a queue another client does something."""

    def __init__(self, api: Api, first: Callable[[], Any]) -> None:
        self._api = api
        self._first: Callable[[], Any] | None = first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def patch(self, kind: Kind, *more: Any) -> Any:
        first, self._first = (None, self._first) if kind.name != "ClusterQueue" else (self._first, None)
        if first is not None:
            await first()
        return await self._api.patch(kind, *more)


async def _end(found: Tenants, meanwhile: Callable[[], Any]) -> bool:
    """End the grant with a quota that was read earlier."""
    quota = await found.cluster.get(RESOURCE_QUOTAS, "team-quota", "team-a")
    grant = grant_of(quota)
    assert grant is not None
    api: Any = _Interrupted(found.cluster.api, meanwhile)
    return await end_grant(api, CLUSTER_QUEUES, quota, grant, ("shoal run", "2026-01-01T01:00:00Z"))


@virtual
async def test_a_change_of_the_queue_while_a_grant_ends_is_kept(tmp_path: Path) -> None:
    async with tenants(tmp_path) as found:

        async def stop() -> None:
            await found.cluster.patch(CLUSTER_QUEUES, "team-a", {"spec": {"stopPolicy": "Hold"}})
            queue = await found.cluster.get(CLUSTER_QUEUES, "team-a")
            queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"].append({"name": "pods", "nominalQuota": "5"})
            queue["spec"]["resourceGroups"][0]["coveredResources"].append("pods")
            await found.cluster.patch(CLUSTER_QUEUES, "team-a", {"spec": queue["spec"]})

        assert await _end(found, stop)
        spec = (await found.cluster.get(CLUSTER_QUEUES, "team-a"))["spec"]
        assert "pods" in [one["name"] for one in spec["resourceGroups"][0]["flavors"][0]["resources"]]
        assert await found.gpus() == ("8", "8")


@virtual
async def test_a_grant_that_replaces_one_while_it_ends_keeps_the_queue(tmp_path: Path) -> None:
    async with tenants(tmp_path) as found:

        async def grant() -> None:
            await found.cluster.pass_time(5)
            await found.grant(30)

        with pytest.raises(ConflictError):
            await _end(found, grant)
        assert await found.gpus() == ("30", "30")


@virtual
async def test_a_grant_that_was_replaced_is_not_ended(tmp_path: Path) -> None:
    async with tenants(tmp_path) as found:
        quota = await found.cluster.get(RESOURCE_QUOTAS, "team-quota", "team-a")
        old = grant_of(quota)
        assert old is not None
        await found.cluster.pass_time(5)
        await found.grant(30)
        by = ("shoal run", "2026-01-01T01:00:00Z")
        assert not await end_grant(found.cluster.api, CLUSTER_QUEUES, quota, old, by)
        assert await found.gpus() == ("30", "30")
