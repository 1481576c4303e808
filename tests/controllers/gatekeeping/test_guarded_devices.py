"""Which devices a pod holds is for clients that may bind to say, and parts of GPUs are asked for before binding."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.guarded_clusters import written
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.kind import NODES, PODS, Kind
from shoal.client.port import Api, Patch
from shoal.client.refusals import ForbiddenError
from shoal.controllers.gatekeeping.policies import CHECKING, CHECKING_BINDINGS, devices_policy, parts_policy
from shoal.embedded.apiserver.admission_expressions import Expression
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.dynamic.policy import visible_to
from shoal.embedded.apiserver.inside.api import InsideApi

Obj = dict[str, Any]
DEVICES = {"shoal.dev/devices": "0,1,2,3"}
FRACTION = {"gpu-fraction": "0.01", "gpu-fraction-num-devices": "8"}
_ROLES = Kind("rbac.authorization.k8s.io", "v1", "roles", "Role")
_ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


def asking(name: str, annotations: dict[str, str], **spec: Any) -> Obj:
    meta = {"name": name, "namespace": "default", "annotations": annotations}
    return {"metadata": meta, "spec": {**written(PODS), **spec}}


@asynccontextmanager
async def beside_tenant(folder: Path) -> AsyncIterator[tuple[SmallCluster, Api]]:
    """A cluster, and the client of a user who may edit everything in the namespace `default`."""
    async with small_cluster(folder, authorization="rbac") as cluster:
        for pair in (devices_policy(), parts_policy()):
            await cluster.create(CHECKING, deepcopy(pair.policy))
            await cluster.create(CHECKING_BINDINGS, deepcopy(pair.binding))
        subject = {"kind": "User", "name": "tenant", "apiGroup": "rbac.authorization.k8s.io"}
        role = {"kind": "ClusterRole", "name": "edit", "apiGroup": "rbac.authorization.k8s.io"}
        await cluster.create(_ROLE_BINDINGS, {"metadata": {"name": "t"}, "subjects": [subject], "roleRef": role})
        await cluster.pass_time(1)
        yield cluster, InsideApi(cluster.plane, Actor("tenant", ("system:authenticated",)), "test")


@virtual
async def test_a_tenant_cannot_choose_devices(tmp_path: Path) -> None:
    async with beside_tenant(tmp_path) as (_, tenant):
        with pytest.raises(ForbiddenError, match="only a client that may create pods/binding"):
            await tenant.create(PODS, asking("chosen", DEVICES))
        await tenant.create(PODS, asking("plain", {}))
        with pytest.raises(ForbiddenError, match="only a client that may create pods/binding"):
            await tenant.patch(PODS, "default", "plain", Patch("merge", {"metadata": {"annotations": DEVICES}}))


@virtual
async def test_a_tenant_cannot_take_devices_away_from_what_the_scheduler_wrote(tmp_path: Path) -> None:
    async with beside_tenant(tmp_path) as (cluster, tenant):
        await cluster.create(PODS, asking("bound", DEVICES))
        with pytest.raises(ForbiddenError, match="only a client that may create pods/binding"):
            await tenant.patch(
                PODS, "default", "bound", Patch("merge", {"metadata": {"annotations": {"shoal.dev/devices": None}}})
            )
        await tenant.patch(PODS, "default", "bound", Patch("merge", {"metadata": {"labels": {"a": "b"}}}))


@virtual
async def test_parts_of_gpus_are_asked_for_from_a_scheduler_and_stay_as_they_were_counted(tmp_path: Path) -> None:
    async with beside_tenant(tmp_path) as (_, tenant):
        with pytest.raises(ForbiddenError, match=r"may use them with spec\.nodeName"):
            await tenant.create(PODS, asking("past", FRACTION, nodeName="n"))
        await tenant.create(PODS, asking("fair", FRACTION))
        with pytest.raises(ForbiddenError, match="or change them after the pod was created"):
            await tenant.patch(
                PODS, "default", "fair", Patch("merge", {"metadata": {"annotations": {"gpu-fraction": "1"}}})
            )
        await tenant.create(PODS, asking("no-gpu", {}, nodeName="n"))


@virtual
async def test_a_template_chooses_no_devices_whichever_controller_makes_the_pod(tmp_path: Path) -> None:
    async with beside_tenant(tmp_path) as (cluster, _):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
        made = asking("child", DEVICES)
        made["metadata"]["ownerReferences"] = [owner]
        with pytest.raises(ForbiddenError, match="only a client that may create pods/binding"):
            await cluster.create(PODS, made)


@virtual
async def test_the_status_is_no_way_around(tmp_path: Path) -> None:
    async with beside_tenant(tmp_path) as (cluster, _):
        await cluster.create(PODS, asking("fair", FRACTION))
        rule = {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch", "update"]}
        await cluster.create(_ROLES, {"metadata": {"name": "s"}, "rules": [rule]})
        await bind_role(cluster, "s", "agent")
        agent = InsideApi(cluster.plane, Actor("agent", ("system:authenticated",)), "test")
        more = {"metadata": {"annotations": {"gpu-fraction-num-devices": "9"}}}
        with pytest.raises(ForbiddenError, match="or change them after the pod was created"):
            await agent.patch(PODS, "default", "fair", Patch("merge", more), "status")
        with pytest.raises(ForbiddenError, match="only a client that may create pods/binding"):
            await agent.patch(PODS, "default", "fair", Patch("merge", {"metadata": {"annotations": DEVICES}}), "status")
        await agent.patch(PODS, "default", "fair", Patch("merge", {"status": {"message": "it goes on"}}), "status")


@virtual
async def test_an_agent_may_write_the_devices_of_pods_on_its_node_and_of_no_others(tmp_path: Path) -> None:
    async with beside_tenant(tmp_path) as (cluster, _):
        for name, node in (("here", "n"), ("there", "m"), ("pending", "")):
            await cluster.create(PODS, asking(name, {}, **({"nodeName": node} if node else {})))
        rules = [
            {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
            {"apiGroups": [""], "resources": ["pods/devices"], "verbs": ["update"]},
        ]
        await cluster.create(_ROLES, {"metadata": {"name": "s"}, "rules": rules})
        await bind_role(cluster, "s", "agent")
        extra = (("authentication.kubernetes.io/node-name", ("n",)),)
        report = Patch("merge", {"metadata": {"annotations": DEVICES}})
        own = InsideApi(cluster.plane, Actor("agent", ("system:authenticated",), extra=extra), "test")
        await own.patch(PODS, "default", "here", report, "status")
        for other in ("there", "pending"):
            with pytest.raises(ForbiddenError, match="only a client that may create pods/binding"):
                await own.patch(PODS, "default", other, report, "status")
        unnamed = InsideApi(cluster.plane, Actor("agent", ("system:authenticated",)), "test")
        await unnamed.patch(PODS, "default", "there", report, "status")


@virtual
async def test_a_kubelet_may_show_its_own_static_pods_and_nobody_else_may(tmp_path: Path) -> None:
    def shown(name: str, node: str) -> Obj:
        made = asking(name, FRACTION | DEVICES | {"kubernetes.io/config.mirror": "hash"}, nodeName=node)
        owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uids[node], "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
        return made

    async with beside_tenant(tmp_path) as (cluster, tenant):
        uids = {name: (await cluster.create(NODES, {"metadata": {"name": name}}))["metadata"]["uid"] for name in "mn"}
        await bind_role(cluster, "system:node", "system:nodes", kind="Group", of="ClusterRole")
        await bind_role(cluster, "edit", "system:node:x", of="ClusterRole")
        kubelet = InsideApi(cluster.plane, Actor("system:node:n", ("system:nodes", "system:authenticated")), "test")
        await kubelet.create(PODS, shown("its-own", "n"))
        with pytest.raises(ForbiddenError):
            await kubelet.create(PODS, shown("of-another", "m"))
        with pytest.raises(ForbiddenError, match="only a client that may create pods/binding"):
            await tenant.create(PODS, shown("forged", "n"))
        no_node = InsideApi(cluster.plane, Actor("system:node:x", ("system:authenticated",)), "test")
        uids["x"] = "u"
        with pytest.raises(ForbiddenError, match="only a client that may create pods/binding"):
            await no_node.create(PODS, shown("of-no-node", "x"))


async def bind_role(cluster: SmallCluster, role: str, name: str, kind: str = "User", of: str = "Role") -> None:
    group = "rbac.authorization.k8s.io"
    subject = {"kind": kind, "name": name, "apiGroup": group}
    to = {"kind": of, "name": role, "apiGroup": group}
    made = f"{role}-{name}".replace(":", "-")
    await cluster.create(_ROLE_BINDINGS, {"metadata": {"name": made}, "subjects": [subject], "roleRef": to})


ANNOTATIONS = st.none() | st.dictionaries(
    st.sampled_from(["shoal.dev/devices", "gpu-fraction", "gpu-memory", "other"]), st.sampled_from(["", "1", "2"])
)


@given(ANNOTATIONS, ANNOTATIONS)
def test_an_update_that_leaves_annotations_alone_is_looked_at_no_further_and_loses_nothing(
    before: dict[str, str] | None, after: dict[str, str] | None
) -> None:
    spec = devices_policy().policy["spec"]
    visible = visible_to(spec)

    def holds(expression: str) -> bool:
        return Expression(expression, visible, "bool").value(dict(scope)) is True

    def shown(annotations: dict[str, str] | None) -> Obj:
        return {"metadata": {} if annotations is None else {"annotations": annotations}, "spec": {}}

    scope = {"object": shown(after), "oldObject": shown(before)}
    is_looked_at = holds(spec["matchConditions"][0]["expression"])
    assert is_looked_at == ((before or {}) != (after or {}))
    if not is_looked_at:
        # Without an authorizer: what asks it is not evaluated.
        assert all(holds(one["expression"]) for one in spec["validations"])
