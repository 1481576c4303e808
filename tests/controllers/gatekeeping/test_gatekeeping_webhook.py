"""Where policies are not served, the webhook holds jobs; and it converts Kueue's kinds. All over real HTTPS."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from build.free_ports import free_port
from build.small_clusters import SmallCluster, small_cluster
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, LOCAL_QUEUES, WORKLOADS
from shoal.client.kind import DEFINITIONS, JOBS, NAMESPACES, PODS, SECRETS
from shoal.client.port import Patch
from shoal.client.refusals import RefusedError
from shoal.client.served import Served
from shoal.controllers.gatekeeping.held_kinds import GATE, MANAGED, QUEUE_LABEL, HoldingRules
from shoal.controllers.gatekeeping.hooks import HOOKS, NAME, WebhookAddress
from shoal.controllers.gatekeeping.rendezvous import ASKS
from shoal.controllers.gatekeeping.webhook import Webhook, WebhookSettings
from shoal.controllers.gatekeeping.webhook_cert_folder import WebhookCertFolder
from shoal.controllers.gatekeeping.webhook_certs import machine_date, new_papers
from shoal.embedded.apiserver.foreign.converting import kueue_definitions
from shoal.units.errors import TemporaryError

Obj = dict[str, Any]
_QUEUED = {QUEUE_LABEL: "team"}
_SPEED = 50.0


def _pod() -> Obj:
    return {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}


class _Listening:
    def __init__(
        self,
        context: Context,
        port: int,
        *,
        is_last_resort: bool,
        date: Callable[[], datetime] = machine_date,
        is_begun_again: bool = False,
        certs: Path | None = None,
    ) -> None:
        self.name = "webhook"
        self._is_to_end = is_begun_again
        self._served = Served(context)
        address = WebhookAddress(url=f"https://127.0.0.1:{port}", injected_from="gpus/hook" if certs else "")
        settings = WebhookSettings(
            "127.0.0.1", port, address, ("127.0.0.1",), is_last_resort=is_last_resort, date=date, folder=certs
        )
        self.webhook = Webhook(context, self._served, settings, HoldingRules)

    async def run(self) -> None:
        await self._served.look()
        if self._is_to_end:
            first = asyncio.ensure_future(self.webhook.run())
            await self.webhook.is_serving.wait()
            first.cancel()
            await asyncio.wait([first])
            self.webhook.is_serving.clear()
            self._is_to_end = False
        await self.webhook.run()

    @property
    def is_serving(self) -> bool:
        return self.webhook.is_serving.is_set() and not self._is_to_end


@asynccontextmanager
async def _hooked(
    folder: Path,
    *,
    is_last_resort: bool = False,
    date: Callable[[], datetime] = machine_date,
    is_begun_again: bool = False,
    certs: Path | None = None,
) -> AsyncIterator[SmallCluster]:
    async with small_cluster(folder, speed=_SPEED) as cluster:
        for definition in kueue_definitions():
            await cluster.create(DEFINITIONS, definition)
        await cluster.until(lambda: _has_queues(cluster), 600)
        port = free_port()

        def make(context: Context) -> Controller:
            made = _Listening(
                context, port, is_last_resort=is_last_resort, date=date, is_begun_again=is_begun_again, certs=certs
            )
            started.append(made)
            return made

        started: list[_Listening] = []
        cluster.start(make)
        await cluster.until(lambda: _is_led(cluster) if started[0].is_serving else False, 300)
        yield cluster


async def _has_queues(cluster: SmallCluster) -> bool:
    return "localqueues" in {one.kind.plural for one in await cluster.api.served()}


async def _is_led(cluster: SmallCluster) -> bool:
    strategies = {one["spec"].get("conversion", {}).get("strategy") for one in await cluster.all(DEFINITIONS)}
    return strategies == {"Webhook"}


def _in_a_loop(test: Callable[[Path], Awaitable[None]]) -> Callable[[Path], None]:
    def run(tmp_path: Path) -> None:
        asyncio.run(_limited(test(tmp_path)))

    run.__name__, run.__doc__ = getattr(test, "__name__", ""), test.__doc__
    return run


async def _limited(work: Awaitable[None]) -> None:
    await asyncio.wait_for(work, 60)


@_in_a_loop
async def test_the_webhook_holds_jobs_and_pods_where_it_has_to(tmp_path: Path) -> None:
    async with _hooked(tmp_path) as cluster:
        meta: Obj = {"name": "j", "labels": dict(_QUEUED)}
        job = await cluster.create(JOBS, {"metadata": meta, "spec": {"template": {"spec": _pod()}}})
        assert job["spec"]["suspend"] is True
        meta = {"name": "p", "labels": dict(_QUEUED), "annotations": {ASKS: "true"}}
        pod = await cluster.create(PODS, {"metadata": meta, "spec": _pod()})
        assert pod["spec"]["schedulingGates"] == [{"name": GATE}]
        assert pod["metadata"]["labels"][MANAGED] == "true"
        names = [one["name"] for one in pod["spec"]["containers"][0]["env"]]
        assert names[:2] == ["RANK", "WORLD_SIZE"]
        free = await cluster.create(JOBS, {"metadata": {"name": "free"}, "spec": {"template": {"spec": _pod()}}})
        assert free["spec"]["suspend"] is False
        await cluster.create(LOCAL_QUEUES, {"metadata": {"name": "default"}, "spec": {"clusterQueue": "all"}})
        await cluster.pass_time(10)
        default = await cluster.create(JOBS, {"metadata": {"name": "d"}, "spec": {"template": {"spec": _pod()}}})
        assert default["metadata"]["labels"][QUEUE_LABEL] == "default"
        assert default["spec"]["suspend"] is True


@_in_a_loop
async def test_a_webhook_that_is_begun_again_answers_again(tmp_path: Path) -> None:
    async with _hooked(tmp_path, is_begun_again=True) as cluster:
        meta: Obj = {"name": "j", "labels": dict(_QUEUED)}
        job = await cluster.create(JOBS, {"metadata": meta, "spec": {"template": {"spec": _pod()}}})
        assert job["spec"]["suspend"] is True


@_in_a_loop
async def test_only_namespaces_that_have_a_default_queue_are_asked_about_jobs_that_name_none(tmp_path: Path) -> None:
    """Whoever is asked waits while no replica answers."""
    async with _hooked(tmp_path) as cluster:
        assert await _asked_by_default(cluster) == []
        await cluster.create(NAMESPACES, {"metadata": {"name": "team"}})
        for namespace in ("team", "default"):
            queue = {"metadata": {"name": "default"}, "spec": {"clusterQueue": "all"}}
            await cluster.create(LOCAL_QUEUES, queue, namespace)
        await cluster.until(lambda: _is_asked(cluster, ["default", "team"]))
        await cluster.delete(LOCAL_QUEUES, "default", namespace="team")
        await cluster.until(lambda: _is_asked(cluster, ["default"]))


async def _asked_by_default(cluster: SmallCluster) -> list[str]:
    hooks = {one["name"].partition(".")[0]: one for one in (await cluster.get(HOOKS, NAME))["webhooks"]}
    if "default" not in hooks:
        return []
    rules = hooks["default"]["namespaceSelector"]["matchExpressions"]
    return next(list(one["values"]) for one in rules if one["operator"] == "In")


async def _is_asked(cluster: SmallCluster, namespaces: list[str]) -> bool:
    return await _asked_by_default(cluster) == namespaces


@_in_a_loop
async def test_a_certificate_of_cert_manager_is_served_and_its_authority_left_to_cert_manager(tmp_path: Path) -> None:
    papers = new_papers(("127.0.0.1",), machine_date())
    (tmp_path / "tls.crt").write_bytes(papers.certificate)
    (tmp_path / "tls.key").write_bytes(papers.key)
    async with _hooked(tmp_path, certs=tmp_path) as cluster:
        hooks = await cluster.get(HOOKS, NAME, "")
        assert hooks["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "gpus/hook"}
        assert {one["clientConfig"].get("caBundle") for one in hooks["webhooks"]} == {None}
        for definition in await cluster.all(DEFINITIONS):
            assert definition["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] == "gpus/hook"
        assert not [one for one in await cluster.all(SECRETS) if one["metadata"]["name"] == "shoal-webhook-papers"]
        bundle = base64.b64encode(papers.bundle).decode()
        # As cert-manager injects it.
        injected = [{**one, "clientConfig": {**one["clientConfig"], "caBundle": bundle}} for one in hooks["webhooks"]]
        await cluster.api.patch(HOOKS, "", NAME, Patch("merge", {"webhooks": injected}))
        meta: Obj = {"name": "j", "labels": dict(_QUEUED)}
        job = await cluster.create(JOBS, {"metadata": meta, "spec": {"template": {"spec": _pod()}}})
        assert job["spec"]["suspend"] is True
        await cluster.pass_time(150)
        hooks = await cluster.get(HOOKS, NAME, "")
        assert {one["clientConfig"].get("caBundle") for one in hooks["webhooks"]} == {bundle}


async def test_a_missing_certificate_is_named_and_looked_for_again(tmp_path: Path) -> None:
    folder = WebhookCertFolder(tmp_path)
    with pytest.raises(TemporaryError, match="cannot be read: No such file"):
        await folder.papers()
    (tmp_path / "tls.crt").write_bytes(b"")
    (tmp_path / "tls.key").write_bytes(b"")
    with pytest.raises(TemporaryError, match="is not issued yet"):
        await folder.papers()
    (tmp_path / "tls.crt").write_bytes(b"c")
    (tmp_path / "tls.key").write_bytes(b"k")
    assert (await folder.papers()).chain == b"ck"


@_in_a_loop
async def test_where_policies_are_served_the_webhook_only_converts(tmp_path: Path) -> None:
    async with _hooked(tmp_path, is_last_resort=True) as cluster:
        with pytest.raises(RefusedError):
            await cluster.get(HOOKS, NAME)


@_in_a_loop
async def test_kueue_objects_are_what_the_other_version_calls_them(tmp_path: Path) -> None:
    async with _hooked(tmp_path) as cluster:
        older = CLUSTER_QUEUES._replace(version="v1beta1")
        fungible = {"whenCanBorrow": "Borrow", "whenCanPreempt": "TryNextFlavor"}
        spec = {"cohort": "all", "admissionChecks": ["a"], "flavorFungibility": fungible}
        await cluster.create(older, {"metadata": {"name": "q"}, "spec": spec})
        now = (await cluster.get(CLUSTER_QUEUES, "q"))["spec"]
        assert now["cohortName"] == "all"
        assert "cohort" not in now
        assert now["admissionChecksStrategy"] == {"admissionChecks": [{"name": "a"}]}
        assert now["flavorFungibility"]["whenCanBorrow"] == "MayStopSearch"
        before = (await cluster.get(older, "q"))["spec"]
        assert before["cohort"] == "all"
        sets = [{"name": "main", "count": 1, "template": {"spec": _pod()}}]
        classed = {"priorityClassName": "high", "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass"}
        written = {"metadata": {"name": "w"}, "spec": {"podSets": sets, "priority": 5, **classed}}
        await cluster.create(WORKLOADS._replace(version="v1beta1"), written)
        reference = (await cluster.get(WORKLOADS, "w"))["spec"]["priorityClassRef"]
        assert reference == {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}


@_in_a_loop
async def test_a_second_replica_shows_the_papers_of_the_first(tmp_path: Path) -> None:
    async with _hooked(tmp_path) as cluster:
        secret = (await cluster.get(SECRETS, "shoal-webhook-papers", "shoal-system"))["data"]
        port = free_port()

        def make(context: Context) -> Controller:
            return _Listening(context, port, is_last_resort=True)

        cluster.start(make)
        bundle = base64.b64decode(secret["ca.crt"]).decode()
        await cluster.until(lambda: _answers(port, bundle), 300)
        assert (await cluster.get(SECRETS, "shoal-webhook-papers", "shoal-system"))["data"] == secret


@_in_a_loop
async def test_lost_papers_are_made_anew_and_told_to_everybody(tmp_path: Path) -> None:
    async with _hooked(tmp_path) as cluster:
        before = (await cluster.get(SECRETS, "shoal-webhook-papers", "shoal-system"))["data"]
        await cluster.delete(SECRETS, "shoal-webhook-papers", namespace="shoal-system")

        async def is_reported() -> bool:
            hooks = (await cluster.get(HOOKS, NAME))["webhooks"]
            return all(one["clientConfig"]["caBundle"] != before["ca.crt"] for one in hooks)

        await cluster.until(is_reported, 600)
        meta: Obj = {"name": "j", "labels": dict(_QUEUED)}
        job = await cluster.create(JOBS, {"metadata": meta, "spec": {"template": {"spec": _pod()}}})
        assert job["spec"]["suspend"] is True


@_in_a_loop
async def test_papers_that_grow_old_are_renewed_and_jobs_are_held_all_the_while(tmp_path: Path) -> None:
    # Whoever checks a certificate goes by the machine's date, so this begins in the past.
    ages = [timedelta(days=650)]
    now = machine_date()

    async with _hooked(tmp_path, date=lambda: now - ages[-1]) as cluster:
        # First the certificate is due, then the authority, beside which the old one is trusted on.
        for age, authorities in ((45, 1), (0, 2)):
            before = (await cluster.get(SECRETS, "shoal-webhook-papers", "shoal-system"))["data"]
            ages.append(timedelta(days=age))

            async def is_reported(before: Obj = before) -> bool:
                data = (await cluster.get(SECRETS, "shoal-webhook-papers", "shoal-system"))["data"]
                hooks = (await cluster.get(HOOKS, NAME))["webhooks"]
                is_led = all(one["clientConfig"]["caBundle"] == data["ca.crt"] for one in hooks)
                return is_led and data != before

            await cluster.until(is_reported, 600)
            data = (await cluster.get(SECRETS, "shoal-webhook-papers", "shoal-system"))["data"]
            assert base64.b64decode(data["ca.crt"]).count(b"BEGIN CERTIFICATE") == authorities
            meta: Obj = {"name": f"j-{age}", "labels": dict(_QUEUED)}
            job = await cluster.create(JOBS, {"metadata": meta, "spec": {"template": {"spec": _pod()}}})
            assert job["spec"]["suspend"] is True


@_in_a_loop
async def test_what_somebody_takes_away_or_turns_elsewhere_is_put_right(tmp_path: Path) -> None:
    async with _hooked(tmp_path) as cluster:
        first = await cluster.get(HOOKS, NAME)
        turned = [{**one, "clientConfig": {"url": "https://127.0.0.1:1"}} for one in first["webhooks"]]
        await cluster.patch(HOOKS, NAME, {"webhooks": turned})
        # Long before it would look by itself.
        await cluster.until(lambda: _points_as(cluster, first), 20)
        await cluster.delete(HOOKS, NAME)
        await cluster.until(lambda: _points_as(cluster, first), 20)


@_in_a_loop
async def test_two_that_disagree_do_not_write_as_fast_as_they_can(tmp_path: Path) -> None:
    async with _hooked(tmp_path) as cluster:
        before = (await cluster.get(HOOKS, NAME))["metadata"]["generation"]
        port = free_port()
        cluster.start(lambda context: _Listening(context, port, is_last_resort=False))
        await cluster.pass_time(120)
        written = (await cluster.get(HOOKS, NAME))["metadata"]["generation"] - before
        assert 1 <= written <= 14


async def _points_as(cluster: SmallCluster, wanted: Obj) -> bool:
    try:
        found = await cluster.get(HOOKS, NAME)
    except RefusedError:
        return False
    return [one["clientConfig"] for one in found["webhooks"]] == [one["clientConfig"] for one in wanted["webhooks"]]


@_in_a_loop
async def test_what_is_no_review_is_refused_and_the_next_is_answered(tmp_path: Path) -> None:
    async with _hooked(tmp_path) as cluster:
        hooks = (await cluster.get(HOOKS, NAME))["webhooks"]
        address = hooks[0]["clientConfig"]["url"].rpartition("/")[0]
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
            for raw in (b"", b"[]", b"{}", b'{"request": {}}', b"\xff"):
                async with session.post(f"{address}/hold", data=raw) as answer:
                    assert answer.status == 400, raw
            review = {"request": {"uid": "u", "desiredAPIVersion": "kueue.x-k8s.io/v9", "objects": [{}]}}
            async with session.post(f"{address}/convert", json=review) as answer:
                found = await answer.json()
        assert found["response"]["result"]["status"] == "Failure"


async def _answers(port: int, bundle: str) -> bool:
    tls = ssl.create_default_context(cadata=bundle)
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://127.0.0.1:{port}/healthz", ssl=tls) as answer,
        ):
            return answer.status == 200
    except aiohttp.ClientError:
        return False
