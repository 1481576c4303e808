"""The operator is killed at each of its writes in turn, and its successor completes what was begun.

The n-th write is done and its answer lost, or it is the last that was answered. `SHOAL_OPERATOR_KILL_POINTS=1` takes
every write; usual is every third.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from build.frozen_api import FrozenApi
from build.operated_clusters import SPACE, OperatorProcess, gpu_node, make_ready, operated_cluster, policy, status
from build.small_clusters import SmallCluster
from build.virtual_time import in_virtual_time
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES
from shoal.client.item import Obj
from shoal.client.kind import CLUSTER_ROLES, DAEMON_SETS, NODES, SERVICE_ACCOUNTS, SERVICES
from shoal.controllers.operator.owned_objects import CLUSTER_ROLE_BINDINGS, HASH, ROLE_BINDINGS, ROLES, RUNTIME_CLASSES

_EVERY = int(os.environ.get("SHOAL_OPERATOR_KILL_POINTS", "3"))
_MOST = 400
_KINDS = (
    DAEMON_SETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    ROLES,
    ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
    RUNTIME_CLASSES,
)
_CHANGED: dict[str, Any] = {
    "spec": {"dcgmExporter": {"enabled": False}, "mig": {"strategy": "mixed"}, "dcgm": {"enabled": True}}
}
_FORMER: dict[str, Any] = {
    "spec": {"dcgmExporter": {"enabled": True}, "mig": {"strategy": "single"}, "dcgm": {"enabled": False}}
}


async def _owned(cluster: SmallCluster) -> dict[str, Obj]:
    """The content of the operator's objects, without what the server adds."""
    found: dict[str, Obj] = {}
    for kind in _KINDS:
        for one in await cluster.all(kind):
            if one["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") == "shoal-operator":
                rest = {name: value for name, value in one.items() if name not in ("metadata", "status")}
                meta = {name: one["metadata"].get(name) for name in ("labels", "ownerReferences")}
                meta["hash"] = one["metadata"]["annotations"][HASH]
                found[f"{kind.name} {one['metadata']['name']}"] = {**rest, **meta}
    return found


def _without_addresses(found: dict[str, Obj]) -> dict[str, Obj]:
    """The server assigns an address to each Service that is created."""
    for name, one in found.items():
        if name.startswith("Service "):
            one["spec"] = {key: value for key, value in one["spec"].items() if key not in ("clusterIP", "clusterIPs")}
    return found


async def _settled(cluster: SmallCluster, change: dict[str, Any]) -> dict[str, Obj]:
    """The objects after an operator that nothing disturbs."""
    whole = OperatorProcess(cluster)
    await cluster.patch(CLUSTER_POLICIES, "cluster-policy", change)
    await cluster.pass_time(5)
    await make_ready(cluster)
    await cluster.until(lambda: _is_ready(cluster))
    await whole.kill()
    return _without_addresses(await _owned(cluster))


async def _is_ready(cluster: SmallCluster) -> bool:
    return (await status(cluster))[0] == "ready"


async def _sweep(folder: Path, *, is_lost: bool) -> None:
    async with operated_cluster(folder, starts=False) as cluster:
        await policy(cluster)
        former = await _settled(cluster, _FORMER)
        changed = await _settled(cluster, _CHANGED)
        assert former.keys() != changed.keys()
        points = 0
        for writes in range(0, _MOST, _EVERY):
            wanted, change = (former, _FORMER) if points % 2 == 0 else (changed, _CHANGED)
            name = f"late-{writes}"
            await cluster.create(NODES, gpu_node(name))
            await cluster.patch(CLUSTER_POLICIES, "cluster-policy", change)
            # An object is missing, and another is changed by somebody else.
            await cluster.delete(DAEMON_SETS, "gpu-feature-discovery", namespace=SPACE)
            await cluster.patch(CLUSTER_ROLES, "nvidia-mig-manager", {"rules": []})
            api = FrozenApi(cluster.api, writes, is_lost=is_lost)
            first = OperatorProcess(cluster, api)
            await cluster.pass_time(10)
            has_died = api.frozen.is_set()
            await first.kill()
            second = OperatorProcess(cluster)
            await cluster.pass_time(5)
            await make_ready(cluster)
            await cluster.until(lambda: _is_ready(cluster))
            assert _without_addresses(await _owned(cluster)) == wanted, writes
            labels = (await cluster.get(NODES, name))["metadata"]["labels"]
            assert labels["nvidia.com/gpu.deploy.driver"] == "true", writes
            await second.kill()
            await cluster.delete(NODES, name)
            points += 1
            if not has_died:
                break
        else:
            raise AssertionError("the operator never stops writing")
        assert points > 2, "hardly anything was written"


@pytest.mark.slow
@pytest.mark.parametrize("is_lost", [False, True], ids=["before a write", "after a write"])
def test_the_successor_completes_what_was_begun(is_lost: bool, tmp_path: Path) -> None:
    in_virtual_time(_sweep(tmp_path, is_lost=is_lost))
