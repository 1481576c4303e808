"""`shoal run` has a webhook where one is wanted, and there it holds what the server itself cannot hold."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from build.chosen_runs import OlderServer, chosen_run
from build.free_ports import free_port
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.api.kueue import Configuration
from shoal.api.webhook_rules import WebhookRules
from shoal.client.kind import DEFINITIONS, JOBS, NAMESPACES, SERVICES
from shoal.client.port import Api
from shoal.client.refusals import BusyError, RefusedError
from shoal.controllers.gatekeeping.held_kinds import QUEUE_LABEL, HoldingRules
from shoal.controllers.gatekeeping.hooks import HOOKS, NAME, WebhookAddress, configuration, conversion
from shoal.controllers.gatekeeping.policies import OURS
from shoal.embedded.apiserver.foreign.converting import kueue_definitions
from shoal.units.errors import UserError, Where
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.webhook import (
    NO_POLICIES,
    is_webhook_wanted,
    remove_former_webhook,
    settings_of,
    start_webhook,
    unreachable_text,
)

Obj = dict[str, Any]
_SPEED = 50.0
_POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
EVERYTHING = Configuration(manage_jobs_without_queue_name=True)


def _reached(**more: Any) -> WebhookRules:
    port = free_port()
    return WebhookRules(address="127.0.0.1", port=port, url=f"https://127.0.0.1:{port}", **more)


@asynccontextmanager
async def running(cluster: SmallCluster, api: Api, rules: WebhookRules) -> AsyncIterator[None]:
    for definition in kueue_definitions():
        await cluster.create(DEFINITIONS, definition)
    await cluster.until(lambda: _has_queues(cluster), 600)
    tasks = ProcessTasks(api, api, cluster.clock)
    start_webhook(tasks, api, chosen_run(rules, EVERYTHING))
    try:
        yield
    finally:
        await tasks.end()


async def _has_queues(cluster: SmallCluster) -> bool:
    return "localqueues" in {one.kind.plural for one in await cluster.api.served()}


async def _is_hooked(cluster: SmallCluster) -> bool:
    try:
        await cluster.get(HOOKS, NAME)
    except RefusedError:
        return False
    return True


async def _converts(cluster: SmallCluster) -> bool:
    found = await cluster.get(DEFINITIONS, "workloads.kueue.x-k8s.io")
    return bool(found["spec"]["conversion"]["strategy"] == "Webhook")


def test_jobs_are_held_by_the_webhook_where_the_server_has_no_policies(tmp_path: Path) -> None:
    async def go() -> None:
        async with (
            small_cluster(tmp_path, speed=_SPEED) as cluster,
            running(cluster, OlderServer(cluster), _reached()),
        ):
            await cluster.until(lambda: _is_hooked(cluster), 600)
            await cluster.until(lambda: _converts(cluster), 600)
            # The configuration given to this process holds jobs that ask for no queue as well.
            job = await cluster.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": {"spec": _POD}}})
            assert job["spec"]["suspend"] is True

    asyncio.run(asyncio.wait_for(go(), 60))


def test_where_the_server_has_policies_the_webhook_converts_and_holds_nothing(tmp_path: Path) -> None:
    async def go() -> None:
        async with small_cluster(tmp_path, speed=_SPEED) as cluster, running(cluster, cluster.api, _reached()):
            await cluster.until(lambda: _converts(cluster), 600)
            assert not await _is_hooked(cluster)

    asyncio.run(asyncio.wait_for(go(), 60))


@pytest.mark.parametrize("enabled", ["auto", "never"])
@virtual
async def test_definitions_that_lead_to_a_webhook_that_this_process_does_not_have_are_named(
    enabled: Literal["auto", "never"], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with small_cluster(tmp_path) as cluster:
        led = conversion(WebhookAddress("https://127.0.0.1:9443"), b"")
        for definition in kueue_definitions():
            await cluster.create(DEFINITIONS, {**definition, "spec": {**definition["spec"], "conversion": led}})
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        start_webhook(tasks, cluster.api, chosen_run(WebhookRules(enabled=enabled)))
        await cluster.pass_time(300)
        await tasks.end()
    (warning,) = [one.getMessage() for one in caplog.records if "refer to a webhook" in one.getMessage()]
    assert "https://127.0.0.1:9443/convert" in warning
    assert "set spec.conversion to {strategy: None}" in warning


@virtual
async def test_definitions_that_lead_nowhere_are_not_spoken_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with small_cluster(tmp_path) as cluster:
        for definition in kueue_definitions():
            await cluster.create(DEFINITIONS, definition)
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        start_webhook(tasks, cluster.api, chosen_run())
        await cluster.pass_time(300)
        await tasks.end()
    assert not [one for one in caplog.records if "refer to a webhook" in one.getMessage()]


def _job(**labels: str) -> Obj:
    return {"metadata": {"name": "j", "labels": labels}, "spec": {"template": {"spec": _POD}}}


async def _leave_one_behind(cluster: SmallCluster) -> None:
    """As a tasks beside the server leaves it when it is killed: nobody listens there any more."""
    address = WebhookAddress(f"https://127.0.0.1:{free_port()}", is_beside=True)
    await cluster.create(HOOKS, configuration(address, b"", HoldingRules()))
    with pytest.raises(BusyError, match="connection refused"):
        await cluster.create(JOBS, _job(**{QUEUE_LABEL: "team"}))


def test_beside_an_older_server_what_a_former_life_has_left_is_written_anew_before_anybody_goes_on(
    tmp_path: Path,
) -> None:
    async def go() -> None:
        async with small_cluster(tmp_path) as cluster:
            for definition in kueue_definitions():
                await cluster.create(DEFINITIONS, definition)
            await cluster.until(lambda: _has_queues(cluster))
            await _leave_one_behind(cluster)
            api = OlderServer(cluster)
            tasks = ProcessTasks(api, api, cluster.clock)
            try:
                hook = start_webhook(tasks, api, chosen_run(), is_beside=True)
                assert hook is not None
                await hook.ready()
                job = await cluster.create(JOBS, _job(**{QUEUE_LABEL: "team"}))
                assert job["spec"]["suspend"] is True
                assert not await _converts(cluster), "the embedded server does so by itself"
            finally:
                await tasks.end()

    asyncio.run(asyncio.wait_for(go(), 60))


@virtual
async def test_beside_a_server_that_has_policies_nothing_is_left_of_a_former_life(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _leave_one_behind(cluster)
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        try:
            hook = start_webhook(tasks, cluster.api, chosen_run(), is_beside=True)
            assert hook is not None
            await hook.ready()
            await cluster.create(JOBS, _job(**{QUEUE_LABEL: "team"}))
            assert not await _is_hooked(cluster)
        finally:
            await tasks.end()


@virtual
async def test_a_webhook_that_somebody_runs_elsewhere_is_not_taken_away(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(
            HOOKS, configuration(WebhookAddress("https://shoal.example.com:9443"), b"", HoldingRules())
        )
        await remove_former_webhook(cluster.api)
        assert (await cluster.get(HOOKS, NAME))["metadata"]["labels"] == OURS


@pytest.mark.parametrize(
    ("is_older", "rules", "warning"),
    [
        (True, WebhookRules(), [NO_POLICIES]),
        (True, WebhookRules(enabled="never"), []),
        (False, WebhookRules(), []),
    ],
    ids=["nobody said where", "somebody wants none", "there are policies"],
)
@virtual
async def test_who_can_hold_nothing_at_creation_says_once_what_to_set(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_older: bool, rules: WebhookRules, warning: list[str]
) -> None:
    async with small_cluster(tmp_path) as cluster:
        api = OlderServer(cluster) if is_older else cluster.api
        with caplog.at_level(logging.WARNING, "shoal"):
            async with running(cluster, api, rules):
                await cluster.pass_time(300)
        assert [one.message for one in caplog.records if one.name == "shoal.gatekeeping"] == warning


@virtual
async def test_a_webhook_that_nobody_could_reach_is_not_told_to_anybody(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, running(cluster, cluster.api, WebhookRules()):
        await cluster.pass_time(300)
        assert not await _converts(cluster)
        assert not await _is_hooked(cluster)


@virtual
async def test_a_webhook_is_wanted_once_its_service_is_there(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        assert not await is_webhook_wanted(cluster.api, WebhookRules())
        assert await is_webhook_wanted(cluster.api, WebhookRules(enabled="always"))
        assert await is_webhook_wanted(cluster.api, WebhookRules(url="https://a"))
        await cluster.create(NAMESPACES, {"metadata": {"name": "shoal-system"}})
        spec = {"ports": [{"port": 443, "targetPort": 9443}]}
        await cluster.create(SERVICES, {"metadata": {"name": "shoal-webhook"}, "spec": spec}, "shoal-system")
        assert await is_webhook_wanted(cluster.api, WebhookRules())
        assert not await is_webhook_wanted(cluster.api, WebhookRules(enabled="never", url="https://a"))


@virtual
async def test_nothing_is_led_to_a_webhook_that_listens_where_its_service_does_not_reach(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "shoal-system"}})
        spec = {"ports": [{"port": 443, "targetPort": 9443}]}
        await cluster.create(SERVICES, {"metadata": {"name": "shoal-webhook"}, "spec": spec}, "shoal-system")
        with caplog.at_level(logging.WARNING, "shoal"):
            async with running(cluster, OlderServer(cluster), WebhookRules()):
                await cluster.pass_time(300)
                assert not await _converts(cluster)
                assert not await _is_hooked(cluster)
        assert [one.message for one in caplog.records if one.name == "shoal.gatekeeping"] == [
            unreachable_text(WebhookRules())
        ]


@pytest.mark.parametrize("address", ["", "  "])
def test_a_webhook_does_not_listen_on_every_address_because_none_is_named(address: str) -> None:
    with pytest.raises(UserError) as refused:
        WebhookRules(address=address).check(Where("shoal.yaml"))
    assert refused.value.where.path == "address"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_who_insists_on_a_webhook_says_where_a_service_finds_it(address: str) -> None:
    with pytest.raises(UserError, match=r"webhook\.address: a Service cannot lead to"):
        WebhookRules(enabled="always", address=address).check(Where(path="webhook"))
    for open_to_others in (
        WebhookRules(enabled="always", address="10.0.0.7"),
        WebhookRules(enabled="always", address=address, url="https://shoal.example.com"),
        WebhookRules(address=address),
    ):
        open_to_others.check(Where(path="webhook"))


def test_a_webhook_listens_to_its_own_machine_unless_somebody_says_otherwise() -> None:
    assert settings_of(WebhookRules()).host == "127.0.0.1"


def test_a_certificate_is_for_the_host_that_is_asked() -> None:
    rules = WebhookRules(url="https://hooks.example.com:9443/shoal", names=("10.0.0.1",))
    settings = settings_of(rules)
    assert settings.names == ("10.0.0.1", "hooks.example.com")
    assert settings.address.client("/hold", b"")["url"] == "https://hooks.example.com:9443/shoal/hold"
    by_service = settings_of(WebhookRules(service_namespace="a", service_name="b", service_port=8443))
    wanted = {"namespace": "a", "name": "b", "port": 8443, "path": "/hold"}
    assert by_service.address.client("/hold", b"")["service"] == wanted


@pytest.mark.parametrize("url", ["http://a", "a:443", "https://", "https://a?b", "https://me@a", "https://a#b"])
def test_a_url_that_no_api_server_asks_is_refused(url: str) -> None:
    with pytest.raises(UserError, match=r"webhook\.url: the API server asks by https at a host"):
        WebhookRules(url=url).check(Where(path="webhook"))
