"""The operator does all its work with the rights of its part and no others."""

from __future__ import annotations

from pathlib import Path

from build.foreign_kinds import established
from build.operated_clusters import SPACE, OperatorProcess, daemon_sets, gpu_node, make_ready, policy, status
from build.ruled_clusters import ruled_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES
from shoal.client.kind import NAMESPACES, NODES
from shoal.install.objects.permissions import RoleSubjects, manifests


@virtual
async def test_nothing_is_refused(tmp_path: Path) -> None:
    async with ruled_cluster(tmp_path, "gpu-operator", "prometheus") as ruled:
        cluster = ruled.cluster
        await established(cluster)
        await ruled.apply(manifests(("operator",), RoleSubjects(SPACE, user="ann")))
        await cluster.create(NODES, gpu_node("gpu-0", **{"nvidia.com/mig.capable": "true"}))
        operator = OperatorProcess(cluster, ruled.way_in("ann"))
        image = {"repository": "nvcr.io/nvidia", "enabled": True}
        spec = {
            "psa": {"enabled": True},
            "dcgmExporter": {"serviceMonitor": {"enabled": True}, "enablePodLabels": True},
            "dcgm": {"enabled": True},
            "nodeStatusExporter": {"enabled": True},
            "migManager": image,
            "gfd": image,
        }
        await policy(cluster, spec)
        await cluster.pass_time(5)
        await make_ready(cluster)
        await cluster.pass_time(6)
        assert (await status(cluster))[:2] == ("ready", "Reconciled")
        off = {"dcgm": {"enabled": False}, "dcgmExporter": {"enabled": False}, "nodeStatusExporter": {"enabled": False}}
        await cluster.patch(CLUSTER_POLICIES, "cluster-policy", {"spec": off})
        await cluster.pass_time(5)
        assert not {"nvidia-dcgm", "nvidia-dcgm-exporter"} & await daemon_sets(cluster)
        labels = (await cluster.get(NAMESPACES, SPACE))["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
        await cluster.delete(CLUSTER_POLICIES, "cluster-policy")
        await cluster.pass_time(5)
        await operator.kill()
        assert ruled.refused == []
