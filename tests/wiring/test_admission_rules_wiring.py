"""`shoal run` checks objects by the admission rules, and when it ends, objects are created without the checks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from build.chosen_runs import chosen_run
from build.free_ports import free_port
from build.guarded_clusters import Installed, has_least
from build.ruled_clusters import ruled_cluster
from build.ruled_pods import GPU
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.api.admission_settings import AdmissionSettings
from shoal.api.run_configuration import RunConfiguration
from shoal.api.webhook_rules import WebhookRules
from shoal.client.context import Context, Controller
from shoal.client.kind import JOBS, NAMESPACES, RESOURCE_QUOTAS
from shoal.client.port import Api
from shoal.client.refusals import ForbiddenError, RefusedError
from shoal.controllers.gatekeeping.held_kinds import HoldingRules
from shoal.controllers.gatekeeping.policies import CHECKING, CHECKING_BINDINGS, OURS, POLICIES
from shoal.controllers.gatekeeping.rule_policies import RULE_HOOK, RULE_HOOKS
from shoal.data.permissions import PARTS
from shoal.install.objects.permissions import RoleSubjects, manifests
from shoal.policy.admission_rules.modes import MODE_LABEL, RuleModes
from shoal.policy.admission_rules.mutations import mutating_policies
from shoal.policy.admission_rules.policies import validating_policies
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.webhook import remove_former_webhook, start_webhook

Obj = dict[str, Any]
_SPEED = 50.0


def _job(name: str) -> Obj:
    limits = {"limits": {GPU: "8"}}
    container = {"name": "main", "image": "registry.example/train:1", "resources": limits}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {"metadata": {"name": name}, "spec": {"parallelism": 3, "template": {"spec": pod}}}


@asynccontextmanager
async def _running(cluster: SmallCluster, admission: AdmissionSettings, api: Api | None = None) -> AsyncIterator[None]:
    port = free_port()
    rules = WebhookRules(address="127.0.0.1", port=port, url=f"https://127.0.0.1:{port}")
    choice = chosen_run(rules)
    used = api or cluster.api
    tasks = ProcessTasks(used, used, cluster.clock)
    start_webhook(tasks, used, replace(choice, own=replace(choice.own, admission=admission)))
    try:
        yield
    finally:
        await tasks.end()


async def _selected(cluster: SmallCluster) -> Any:
    try:
        found = await cluster.get(RULE_HOOKS, RULE_HOOK)
    except RefusedError:
        return None
    (hook,) = found["webhooks"]
    assert hook["failurePolicy"] == "Ignore"
    return hook["namespaceSelector"]["matchExpressions"][0]


def test_a_job_beyond_its_quota_is_refused_while_shoal_runs_and_created_when_it_has_ended(tmp_path: Path) -> None:
    async def go() -> None:
        async with small_cluster(tmp_path, speed=_SPEED) as cluster:
            quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {f"requests.{GPU}": "4"}}}
            await cluster.create(RESOURCE_QUOTAS, quota)
            await cluster.patch(NAMESPACES, "default", {"metadata": {"labels": {MODE_LABEL: "enforce"}}})
            async with _running(cluster, AdmissionSettings(enabled=True, mode="off")):
                await cluster.until(lambda: _is_refused(cluster), 600)
                with pytest.raises(ForbiddenError, match=r"8 of nvidia\.com/gpu, and the ResourceQuota gpus allows 4"):
                    await cluster.create(JOBS, _job("refused"))
            assert (await _selected(cluster))["values"] == ["default"]
            await cluster.create(JOBS, _job("created"))

    asyncio.run(asyncio.wait_for(go(), 60))


async def _is_refused(cluster: SmallCluster) -> bool:
    try:
        await cluster.create(JOBS, _job(f"probe-{cluster.clock.seconds():.3f}".replace(".", "-")))
    except ForbiddenError:
        return True
    return False


def test_the_webhook_is_called_where_a_rule_is_active_only(tmp_path: Path) -> None:
    async def go() -> None:
        async with small_cluster(tmp_path, speed=_SPEED) as cluster:
            async with _running(cluster, AdmissionSettings(enabled=True)):
                await cluster.until(lambda: _selected(cluster), 600)
                assert "kube-system" in (await _selected(cluster))["values"]
                await cluster.patch(NAMESPACES, "default", {"metadata": {"labels": {MODE_LABEL: "off"}}})
                await cluster.until(lambda: _leaves_out(cluster, "default"), 600)
            # What a process beside the server has left leads nowhere, and is removed at the next start.
            labels = {"shoal.dev/webhook": "beside-the-server"}
            await cluster.patch(RULE_HOOKS, RULE_HOOK, {"metadata": {"labels": labels}})
            await remove_former_webhook(cluster.api)
            assert await _selected(cluster) is None

    asyncio.run(asyncio.wait_for(go(), 60))


async def _leaves_out(cluster: SmallCluster, namespace: str) -> bool:
    found = await _selected(cluster)
    return found["operator"] == "NotIn" and namespace in found["values"]


def _with_rules(context: Context) -> Controller:
    return Installed(context, HoldingRules, RuleModes(default="enforce"))


@virtual
async def test_the_policies_of_the_rules_are_kept_while_they_are_enabled(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        cluster.start(_with_rules)
        await cluster.until(lambda: has_least(cluster, POLICIES, 7))
        policy = await cluster.get(CHECKING, "shoal-rule-shl-354")
        assert policy["metadata"]["labels"] == OURS
        assert (await cluster.get(CHECKING_BINDINGS, "shoal-rule-shl-354-enforce"))["spec"]["validationActions"] == [
            "Deny"
        ]
        assert await cluster.get(POLICIES, "shoal-add-toleration")
        await cluster.delete(CHECKING, "shoal-rule-shl-354")
        await cluster.pass_time(5)
        assert await cluster.get(CHECKING, "shoal-rule-shl-354")


def test_the_role_of_the_gatekeeper_names_every_policy_and_binding() -> None:
    policies = [made for mode in ("warn", "enforce") for made in validating_policies(RuleModes(default=mode))]
    names = {obj["metadata"]["name"] for made in policies for obj in (made.policy, *made.bindings)}
    added = {made.policy["metadata"]["name"] for made in mutating_policies(RuleModes())}
    granted = [set(line.partition("=")[2].split(",")) for line in PARTS["gatekeeper"] if "delete,patch,update" in line]
    assert any(names <= each for each in granted)
    assert any(added <= each for each in granted)
    assert {RULE_HOOK} in granted


def test_the_role_of_the_gatekeeper_is_enough_to_install_and_check_the_rules(tmp_path: Path) -> None:
    async def go() -> None:
        async with ruled_cluster(tmp_path) as ruled:
            cluster, api = ruled.cluster, ruled.way_in("ann")
            await ruled.apply(manifests(("gatekeeper",), RoleSubjects(user="ann")))
            async with _running(cluster, AdmissionSettings(enabled=True), api):
                cluster.start(_with_rules, api=api)
                await cluster.until(lambda: _selected(cluster), 30)
                await cluster.until(lambda: has_least(cluster, CHECKING_BINDINGS, 40), 30)
            assert ruled.refused == []

    asyncio.run(asyncio.wait_for(go(), 60))


def test_the_configuration_of_shoal_run_has_no_rules_by_default() -> None:
    assert RunConfiguration().admission.enabled is False
    assert chosen_run().rule_modes() is None
