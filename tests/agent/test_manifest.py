"""The manifest of the agent: what it needs is allowed, all else is refused, and each privilege has a reason."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from build.agent_manifest import AGENT, KINDS
from build.gpu_pods import GPU, container
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.agent.health.node_condition import NodeConditionWriter
from shoal.agent.plugin.node_pods import FollowedPods
from shoal.agent.plugin.scheduler_choice import SchedulerChoice
from shoal.client.kind import NODES, PODS
from shoal.client.port import Api, Patch, Select
from shoal.client.refusals import ForbiddenError
from shoal.controllers.gatekeeping.policies import CHECKING, CHECKING_BINDINGS, devices_policy
from shoal.devices.names import OWN_DEVICES
from shoal.devices.waiting_requests import PodName
from shoal.embedded.apiserver.inside.api import InsideApi

Obj = dict[str, Any]
FILE = Path(__file__).parents[2] / "deploy/agent.yaml"
DOCUMENTS: list[Obj] = list(yaml.safe_load_all(FILE.read_text()))


@asynccontextmanager
async def installed(folder: Path) -> AsyncIterator[tuple[SmallCluster, Api]]:
    """A cluster with the manifest and with Shoal's policy, a pod on `n0` and one on `n1`; and the agent of `n0`."""
    async with small_cluster(folder, authorization="rbac") as cluster:
        for document in deepcopy(DOCUMENTS):
            await cluster.create(KINDS[document["kind"]], document, document["metadata"].get("namespace", "default"))
        pair = devices_policy()
        await cluster.create(CHECKING, deepcopy(pair.policy))
        await cluster.create(CHECKING_BINDINGS, deepcopy(pair.binding))
        for node in ("n0", "n1"):
            spec = {"nodeName": node, "containers": [{**container("main", 1), "image": "cuda"}]}
            metadata = {"name": f"on-{node}", "annotations": {"team": "a"}}
            await cluster.create(PODS, {"metadata": metadata, "spec": spec})
        await cluster.pass_time(1)
        yield cluster, InsideApi(cluster.plane, AGENT, "shoal-agent")


@virtual
async def test_the_agent_may_do_what_it_does(tmp_path: Path) -> None:
    async with installed(tmp_path) as (cluster, api):
        choice = SchedulerChoice(wait_s=0)
        pods = FollowedPods(
            api, cluster.clock, "n0", choice, lambda: {PodName("default", "on-n0"): {"main": {GPU: ["GPU-a"]}}}
        )
        listed = await api.list(PODS, "", Select(fields="spec.nodeName=n0"))
        choice.set_pods([item.obj() for item in listed.items])
        assert await pods.report()
        written = (await cluster.get(PODS, "on-n0"))["metadata"]["annotations"]
        assert written[OWN_DEVICES] == f'{{"main":{{"{GPU}":["GPU-a"]}}}}'
        await api.list(NODES, "", Select(fields="metadata.name=n0"))


@virtual
@pytest.mark.parametrize(
    ("pod", "subresource", "body"),
    [
        ("on-n1", "status", {"metadata": {"annotations": {OWN_DEVICES: "1"}}}),
        ("on-n0", "status", {"status": {"phase": "Failed"}}),
        ("on-n0", "status", {"metadata": {"labels": {"queue": "other"}}}),
        ("on-n0", "status", {"metadata": {"annotations": {"sidecar": "inject"}}}),
        ("on-n0", "status", {"metadata": {"annotations": {"team": None}}}),
        ("on-n0", "", {"metadata": {"annotations": {OWN_DEVICES: "1"}}}),
    ],
    ids=[
        "a pod of another node",
        "a status",
        "a label",
        "another annotation",
        "an absent annotation",
        "the pod itself",
    ],
)
async def test_the_agent_may_not_change(tmp_path: Path, pod: str, subresource: str, body: Obj) -> None:
    async with installed(tmp_path) as (_, api):
        with pytest.raises(ForbiddenError):
            await api.patch(PODS, "default", pod, Patch("merge", body), subresource)


NODE = "nvidia.com/gpu.count"


@virtual
async def test_the_agent_may_write_the_labels_and_the_condition_of_its_node(tmp_path: Path) -> None:
    async with installed(tmp_path) as (cluster, api):
        await cluster.create(NODES, {"metadata": {"name": "n0"}})
        await api.patch(NODES, "", "n0", Patch("merge", {"metadata": {"labels": {NODE: "8"}}}))
        writer = NodeConditionWriter(api, cluster.clock, "n0", lambda: ())
        assert await writer.written()
        node = await cluster.get(NODES, "n0")
        assert node["metadata"]["labels"][NODE] == "8"
        assert [one["type"] for one in node["status"]["conditions"]] == ["GPUHealthy"]


@virtual
@pytest.mark.parametrize(
    ("node", "subresource", "body"),
    [
        ("n1", "", {"metadata": {"labels": {NODE: "8"}}}),
        ("n1", "status", {"status": {"conditions": [{"type": "GPUHealthy", "status": "True"}]}}),
        ("n0", "", {"spec": {"unschedulable": True}}),
        ("n0", "status", {"status": {"capacity": {"nvidia.com/gpu": "64"}}}),
        ("n0", "status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        ("n0", "", {"metadata": {"labels": {"node-restriction.kubernetes.io/team": "a"}}}),
    ],
    ids=["another node", "its status", "the spec", "resources", "another condition", "a restricted label"],
)
async def test_the_agent_may_not_change_of_nodes(tmp_path: Path, node: str, subresource: str, body: Obj) -> None:
    async with installed(tmp_path) as (cluster, api):
        await cluster.create(NODES, {"metadata": {"name": node}})
        with pytest.raises(ForbiddenError):
            await api.patch(NODES, "", node, Patch("merge", body), subresource)


def test_each_mount_and_each_right_has_a_comment_before_it() -> None:
    lines = FILE.read_text().splitlines()
    reasons = ("- name: device-plugins", "- name: pod-resources", "- name: cdi", '- apiGroups: [""]', "runAsUser: 0")
    for reason in reasons:
        first = next(index for index, line in enumerate(lines) if line.strip() == reason)
        assert lines[first - 1].strip().startswith("#"), reason


def test_the_container_has_no_capability_and_is_not_privileged() -> None:
    spec = next(one for one in DOCUMENTS if one["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    (agent,) = spec["containers"]
    context = agent["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert not context["allowPrivilegeEscalation"]
    assert not {"privileged", "hostPID", "hostNetwork"} & {*context, *spec}
