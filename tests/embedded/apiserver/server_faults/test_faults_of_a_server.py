"""Faults of a server that is up: clients wait, watches end, and clients that list again go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from build.cluster_api import Api
from build.served_planes import ServedPlane, served_plane
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import PODS, Kind
from shoal.client.refusals import ExpiredError

MAPS = "/api/v1/namespaces/default/configmaps"
ROOT = "/shoal/faults"
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap", True)


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


@asynccontextmanager
async def serving(folder: Path, **settings: Any) -> AsyncIterator[tuple[ServedPlane, Api]]:
    async with served_plane(folder, **settings) as served, Api.open(served.kubeconfig) as api:
        yield served, api


async def test_open_watches_end_with_410_and_a_list_starts_anew(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, api):
        first = (await api.get(MAPS)).ok()["metadata"]["resourceVersion"]
        (await api.post(MAPS, config_map("a"))).ok(201)
        async with api.watch(MAPS, resourceVersion=first) as lines:
            assert (await lines.next())["type"] == "ADDED"
            (await api.post(f"{ROOT}/expire-watches", {})).ok(200)
            event = await lines.next()
            assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
            assert await lines.is_at_end()
        async with api.watch(MAPS, resourceVersion=first) as lines:
            assert (await lines.next())["object"]["code"] == 410
        listed = (await api.get(MAPS)).ok()
        assert "a" in [one["metadata"]["name"] for one in listed["items"]]
        async with api.watch(MAPS, resourceVersion=listed["metadata"]["resourceVersion"]) as lines:
            (await api.post(MAPS, config_map("b"))).ok(201)
            assert (await lines.next())["object"]["metadata"]["name"] == "b"


async def test_a_list_at_a_forgotten_revision_is_expired(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, api):
        for name in ("a", "b", "c"):
            (await api.post(MAPS, config_map(name))).ok(201)
        token = (await api.get(MAPS, limit=1)).ok()["metadata"]["continue"]
        (await api.post(MAPS, config_map("d"))).ok(201)
        (await api.post(f"{ROOT}/expire-watches", {})).ok(200)
        assert "too old" in (await api.get(MAPS, limit=1, **{"continue": token})).refused(410, "Expired")


async def test_a_slow_api_delays_requests_and_neither_health_nor_its_own_end(tmp_path: Path) -> None:
    async with serving(tmp_path) as (served, api):
        faults = served.plane.faults
        (await api.post(f"{ROOT}/slow-api", {"delay_ms": 1, "seconds": 60, "verbs": ["list", "get"]})).ok(200)
        (await api.get(MAPS)).ok()
        (await api.get("/version")).ok()
        assert (await api.get("/readyz")).code == 200
        (await api.post(MAPS, config_map("a"))).ok(201)
        assert faults.counts.delayed_requests == 1
        assert (await api.get(ROOT)).ok()["slow-api"]["delay_ms"] == 1
        assert (await api.delete(ROOT)).ok()["slow-api"] is None
        (await api.get(MAPS)).ok()
        metrics = (await api.get("/metrics")).raw.decode()
        assert "shoal_faults_delayed_requests_total 1\n" in metrics
        assert 'shoal_faults_total{fault="slow-api"} 1\n' in metrics


async def test_what_is_wrong_is_said_as_a_status(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, api):
        words = (await api.post(f"{ROOT}/slow-api", {"delay_ms": -1})).refused(422, "Invalid")
        assert words.endswith("delay_ms: Invalid value: -1: must be between 0 and 60000, inclusive")
        (await api.post(f"{ROOT}/other", {})).refused(404, "NotFound")
        (await api.put(ROOT, {})).refused(405, "MethodNotAllowed")


async def test_only_who_has_the_right_makes_faults(tmp_path: Path) -> None:
    async with serving(tmp_path, authorization="rbac") as (served, api):
        (await api.post(f"{ROOT}/expire-watches", {})).ok(200)
        bob = {"Impersonate-User": "bob"}
        words = (await api.ask("POST", f"{ROOT}/expire-watches", {}, headers=bob)).refused(403, "Forbidden")
        assert words == f'forbidden: User "bob" cannot post path "{ROOT}/expire-watches"'
        assert served.plane.faults.counts.expire_watches == 1


@virtual
async def test_watches_from_within_end_and_their_caches_list_again(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        pods = cluster.informers.of(PODS)
        maps = cluster.informers.of(CONFIG_MAPS)
        await cluster.until(lambda: pods.is_synced and maps.is_synced)
        watch = cluster.api.watch(CONFIG_MAPS, cluster.plane.context.state.revision)
        waiting = asyncio.ensure_future(anext(aiter(watch)))
        await asyncio.sleep(0)
        cluster.plane.faults.expire_watches()
        with pytest.raises(ExpiredError):
            await waiting
        await cluster.create(CONFIG_MAPS, config_map("after"))
        await cluster.until(lambda: any(item.name == "after" for item in maps))


async def test_the_next_matching_requests_are_refused_and_then_served(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, api):
        made = (await api.post(MAPS, config_map("a"))).ok(201)
        fault = {"status": 409, "count": 2, "verbs": ["update"], "resource": "configmaps", "namespace": "default"}
        (await api.post(f"{ROOT}/refuse-requests", fault)).ok(200)
        (await api.get(f"{MAPS}/a")).ok()
        for _ in range(2):
            words = (await api.put(f"{MAPS}/a", made)).refused(409, "Conflict")
            assert words.startswith('Operation cannot be fulfilled on configmaps "a": the object has been modified')
        (await api.put(f"{MAPS}/a", made)).ok(200)
        assert "shoal_faults_refused_requests_total 2\n" in (await api.get("/metrics")).raw.decode()


@pytest.mark.parametrize(
    ("code", "reason"), [(429, "TooManyRequests"), (500, "InternalError"), (503, "ServiceUnavailable")]
)
async def test_requests_are_refused_with_the_status_on_request(tmp_path: Path, code: int, reason: str) -> None:
    async with serving(tmp_path) as (_, api):
        shown = (await api.post(f"{ROOT}/refuse-requests", {"status": code})).ok(200)
        assert shown["refuse-requests"]["count_left"] == 1
        answer = await api.get(MAPS)
        assert answer.refused(code, reason)
        assert (answer.headers.get("Retry-After") is not None) == (code == 429)
        assert (await api.get(ROOT)).ok()["refuse-requests"] is None


async def test_a_fault_of_refused_requests_ends_with_the_others(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, api):
        (await api.post(f"{ROOT}/refuse-requests", {"count": 9})).ok(200)
        assert (await api.delete(ROOT)).ok()["refuse-requests"] is None
        (await api.get(MAPS)).ok()


async def test_a_wrong_fault_of_refused_requests_names_all_fields(tmp_path: Path) -> None:
    wrong = {"status": 404, "count": -1, "verbs": "get", "resource": 5, "odd": 1}
    async with serving(tmp_path) as (_, api):
        words = (await api.post(f"{ROOT}/refuse-requests", wrong)).refused(422, "Invalid")
        assert all(name in words for name in ("status: ", "count: ", "verbs: ", "resource: ", "odd: "))
