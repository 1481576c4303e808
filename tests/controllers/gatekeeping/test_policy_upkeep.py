"""Policies are kept as they are to be, and nobody else's are touched."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from build.guarded_clusters import QUEUED, Installed, guarded, has_least, written
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.context import Context, Controller
from shoal.client.kind import JOBS
from shoal.client.served import Served
from shoal.controllers.gatekeeping.held_kinds import (
    HoldingRules,
)
from shoal.controllers.gatekeeping.installer import gatekeeping_controller
from shoal.controllers.gatekeeping.policies import BINDINGS, OURS, POLICIES

Obj = dict[str, Any]


@virtual
async def test_what_somebody_takes_away_or_changes_comes_back(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        await cluster.delete(POLICIES, "shoal-hold-jobs")
        await cluster.patch(BINDINGS, "shoal-hold-pods", {"spec": {"matchResources": {"matchPolicy": "Exact"}}})
        await cluster.patch(POLICIES, "shoal-hold-pods", {"spec": {"failurePolicy": "Ignore"}})
        await cluster.pass_time(5)
        names = {one["metadata"]["name"] for one in await cluster.all(POLICIES)}
        assert "shoal-hold-jobs" in names
        assert (await cluster.get(POLICIES, "shoal-hold-pods"))["spec"]["failurePolicy"] == "Fail"


@virtual
async def test_policies_at_rest_are_not_written_again(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        before = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in await cluster.all(POLICIES)}
        await cluster.pass_time(300)
        after = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in await cluster.all(POLICIES)}
        assert after == before


@virtual
async def test_policies_of_others_stay_and_old_ones_of_ours_go(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        theirs = await cluster.get(POLICIES, "shoal-rendezvous")
        spec = theirs["spec"]
        await cluster.create(POLICIES, {"metadata": {"name": "theirs"}, "spec": spec})
        await cluster.create(POLICIES, {"metadata": {"name": "shoal-of-old", "labels": dict(OURS)}, "spec": spec})
        await cluster.pass_time(5)
        names = {one["metadata"]["name"] for one in await cluster.all(POLICIES)}
        assert "theirs" in names
        assert "shoal-of-old" not in names


@virtual
async def test_where_others_admit_jobs_only_the_rendezvous_stays(tmp_path: Path) -> None:
    found: list[HoldingRules | None] = [HoldingRules()]
    async with guarded(tmp_path, lambda: found[0]) as cluster:
        found[0] = None
        await cluster.pass_time(60)
        assert [one["metadata"]["name"] for one in await cluster.all(POLICIES)] == ["shoal-rendezvous"]
        assert [one["metadata"]["name"] for one in await cluster.all(BINDINGS)] == ["shoal-rendezvous"]
        found[0] = HoldingRules()
        await cluster.pass_time(60)
        assert await has_least(cluster, POLICIES, 10)


def _alone(context: Context) -> Controller:
    return Installed(context, HoldingRules)


@virtual
async def test_without_queues_nobody_is_held(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [_alone]) as cluster:
        await cluster.until(lambda: has_least(cluster, BINDINGS, 1))
        await cluster.pass_time(60)
        assert [one["metadata"]["name"] for one in await cluster.all(POLICIES)] == ["shoal-rendezvous"]
        meta: Obj = {"name": "j", "labels": dict(QUEUED)}
        job = await cluster.create(JOBS, {"metadata": meta, "spec": written(JOBS)})
        assert job["spec"]["suspend"] is False


@virtual
async def test_a_policy_of_somebody_else_under_our_name_stays_as_it_is(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
        patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'test', path: '/kind'}]"}}
        spec = {
            "matchConstraints": {"resourceRules": rules},
            "mutations": [patch],
            "reinvocationPolicy": "Never",
            "failurePolicy": "Ignore",
        }
        theirs = await cluster.create(POLICIES, {"metadata": {"name": "shoal-rendezvous"}, "spec": spec})
        cluster.start(_alone)
        await cluster.pass_time(60)
        found = await cluster.get(POLICIES, "shoal-rendezvous")
        assert found["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]


class _Late:
    """The kinds of the server become known after the controller has started."""

    def __init__(self, context: Context) -> None:
        self._served = Served(context)
        self._loop = gatekeeping_controller(context, self._served)
        self.name = "gatekeeping"

    async def run(self) -> None:
        running = asyncio.ensure_future(self._loop.run())
        await asyncio.sleep(1)
        await self._served.look()
        await running


@virtual
async def test_policies_are_written_as_soon_as_the_kinds_of_the_server_are_known(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        cluster.start(_Late)
        await cluster.until(lambda: has_least(cluster, BINDINGS, 1), 5)
