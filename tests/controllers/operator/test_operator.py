"""The operator creates the objects of a ClusterPolicy, keeps them, and reports its state."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from build.operated_clusters import (
    SETTINGS,
    SPACE,
    daemon_sets,
    gpu_node,
    make_ready,
    operated_cluster,
    policy,
    start_operator,
    status,
)
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES, MISPLACED_CLUSTER_POLICIES, SERVICE_MONITORS
from shoal.client.item import Obj
from shoal.client.kind import CLUSTER_ROLES, CONFIG_MAPS, DAEMON_SETS, NODES, SERVICE_ACCOUNTS
from shoal.client.served import Served
from shoal.controllers.operator.controller import operator_controller
from shoal.controllers.operator.owned_objects import RUNTIME_CLASSES
from shoal.prometheus.registry import Registry
from shoal.telemetry.gpu_operator import measure_operator

PLUGIN, DRIVER, EXPORTER = "nvidia-device-plugin-daemonset", "nvidia-driver-daemonset", "nvidia-dcgm-exporter"


async def _version(cluster: SmallCluster, name: str) -> str:
    return str((await cluster.get(DAEMON_SETS, name, SPACE))["metadata"]["resourceVersion"])


async def _versions(cluster: SmallCluster) -> dict[str, str]:
    found = {}
    for kind in (DAEMON_SETS, SERVICE_ACCOUNTS, CLUSTER_ROLES, RUNTIME_CLASSES, CLUSTER_POLICIES, NODES):
        for one in await cluster.all(kind):
            found[f"{kind.name}/{one['metadata']['name']}"] = one["metadata"]["resourceVersion"]
    return found


async def _warnings(cluster: SmallCluster, name: str = "cluster-policy") -> list[tuple[str, str]]:
    return [(one["reason"], one["message"]) for one in await cluster.events(name) if one["type"] == "Warning"]


@virtual
async def test_the_objects_of_all_components_are_created_and_owned_by_the_policy(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        made = await policy(cluster)
        await cluster.pass_time(5)
        assert {PLUGIN, DRIVER, EXPORTER} <= await daemon_sets(cluster)
        for kind, name, space in (
            (DAEMON_SETS, PLUGIN, SPACE),
            (CLUSTER_ROLES, "nvidia-device-plugin", ""),
            (RUNTIME_CLASSES, "nvidia", ""),
        ):
            owners = (await cluster.get(kind, name, space))["metadata"]["ownerReferences"]
            assert [(one["kind"], one["uid"]) for one in owners] == [("ClusterPolicy", made["metadata"]["uid"])]


@virtual
async def test_the_policy_becomes_ready_with_its_pods(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await policy(cluster)
        await cluster.pass_time(5)
        assert (await status(cluster))[:2] == ("notReady", "DriverNotReady")
        await make_ready(cluster)
        await cluster.pass_time(5)
        assert await status(cluster) == ("ready", "Reconciled", "all components are ready on 1 node with GPUs")
        assert (await cluster.get(CLUSTER_POLICIES, "cluster-policy"))["status"]["namespace"] == SPACE
        await make_ready(cluster, unavailable=1)
        await cluster.pass_time(5)
        assert (await status(cluster))[:2] == ("notReady", "DriverNotReady")


@virtual
async def test_the_nodes_with_gpus_are_labelled(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "cpu-0"}})
        await policy(cluster)
        await cluster.pass_time(5)
        labels = (await cluster.get(NODES, "gpu-0"))["metadata"]["labels"]
        assert (labels["nvidia.com/gpu.present"], labels["nvidia.com/gpu.deploy.driver"]) == ("true", "true")
        assert "nvidia.com/gpu.present" not in (await cluster.get(NODES, "cpu-0"))["metadata"].get("labels", {})
        await cluster.create(NODES, gpu_node("gpu-1"))
        await cluster.pass_time(5)
        assert (await cluster.get(NODES, "gpu-1"))["metadata"]["labels"]["nvidia.com/gpu.present"] == "true"


@virtual
async def test_a_deleted_object_comes_back_and_a_changed_one_is_corrected(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await policy(cluster)
        await cluster.pass_time(5)
        await cluster.delete(DAEMON_SETS, PLUGIN, namespace=SPACE)
        template = {"template": {"spec": {"priorityClassName": "low"}}}
        await cluster.patch(DAEMON_SETS, EXPORTER, {"spec": template}, namespace=SPACE)
        await cluster.patch(CLUSTER_ROLES, "nvidia-mig-manager", {"rules": []})
        await cluster.patch(
            SERVICE_ACCOUNTS,
            "nvidia-driver",
            {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}},
            namespace=SPACE,
        )
        await cluster.pass_time(3)
        assert PLUGIN in await daemon_sets(cluster)
        pod = (await cluster.get(DAEMON_SETS, EXPORTER, SPACE))["spec"]["template"]["spec"]
        assert pod["priorityClassName"] == "system-node-critical"
        assert (await cluster.get(CLUSTER_ROLES, "nvidia-mig-manager"))["rules"]
        labels = (await cluster.get(SERVICE_ACCOUNTS, "nvidia-driver", SPACE))["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "shoal-operator"


@virtual
async def test_an_addition_of_another_client_to_a_list_is_removed(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await policy(cluster)
        await cluster.pass_time(5)
        found = await cluster.get(DAEMON_SETS, EXPORTER, SPACE)
        tolerations = [*found["spec"]["template"]["spec"]["tolerations"], {"operator": "Exists"}]
        await cluster.patch(
            DAEMON_SETS, EXPORTER, {"spec": {"template": {"spec": {"tolerations": tolerations}}}}, namespace=SPACE
        )
        await cluster.pass_time(3)
        pod = (await cluster.get(DAEMON_SETS, EXPORTER, SPACE))["spec"]["template"]["spec"]
        assert len(pod["tolerations"]) == 1


@virtual
async def test_nothing_is_written_while_nothing_changes_also_after_a_restart(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await policy(cluster)
        await cluster.pass_time(5)
        await make_ready(cluster)
        await cluster.pass_time(10)
        before = await _versions(cluster)
        await cluster.pass_time(300)
        assert await _versions(cluster) == before
        start_operator(cluster)
        await cluster.pass_time(60)
        assert await _versions(cluster) == before


@virtual
async def test_a_changed_field_changes_only_its_component(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await policy(cluster)
        await cluster.pass_time(5)
        before = {name: await _version(cluster, name) for name in await daemon_sets(cluster)}
        await cluster.patch(
            CLUSTER_POLICIES,
            "cluster-policy",
            {"spec": {"migManager": {"env": [{"name": "WITH_REBOOT", "value": "true"}]}}},
        )
        await cluster.pass_time(5)
        changed = [name for name in before if await _version(cluster, name) != before[name]]
        assert changed == ["nvidia-mig-manager"]


@virtual
async def test_the_objects_of_a_component_that_is_switched_off_are_removed(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        monitored = {"dcgmExporter": {"serviceMonitor": {"enabled": True, "interval": "30s"}}}
        await policy(cluster, monitored)
        await cluster.pass_time(5)
        assert (await cluster.get(SERVICE_MONITORS, EXPORTER, SPACE))["spec"]["endpoints"][0]["interval"] == "30s"
        await cluster.patch(
            CLUSTER_POLICIES,
            "cluster-policy",
            {"spec": {"dcgmExporter": {"enabled": False}, "driver": {"enabled": False}}},
        )
        await cluster.pass_time(5)
        left = await daemon_sets(cluster)
        assert not {EXPORTER, DRIVER} & left
        assert PLUGIN in left
        accounts = {one["metadata"]["name"] for one in await cluster.all(SERVICE_ACCOUNTS, SPACE)}
        assert not {EXPORTER, "nvidia-driver"} & accounts
        assert not await cluster.all(SERVICE_MONITORS, SPACE)


@virtual
async def test_objects_of_others_stay(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        labels = {"app.kubernetes.io/managed-by": "shoal-operator"}
        mine: Obj = {"metadata": {"name": "mine", "labels": labels}, "data": {"a": "b"}}
        await cluster.create(CONFIG_MAPS, mine, SPACE)
        await policy(cluster)
        await cluster.pass_time(5)
        assert (await cluster.get(CONFIG_MAPS, "mine", SPACE))["data"] == {"a": "b"}


@virtual
async def test_a_daemon_set_of_another_owner_is_not_taken_over_and_is_named(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path, starts=False) as cluster:
        labels = {"app": "other"}
        pod = {"containers": [{"name": "c", "image": "other"}]}
        spec: Any = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
        await cluster.create(DAEMON_SETS, {"metadata": {"name": PLUGIN}, "spec": spec}, SPACE)
        start_operator(cluster)
        await policy(cluster)
        await cluster.pass_time(5)
        state, reason, message = await status(cluster)
        assert (state, reason) == ("notReady", "ReconcileFailed")
        assert message.startswith(f"DaemonSet {PLUGIN}: ")
        found = await cluster.get(DAEMON_SETS, PLUGIN, SPACE)
        assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "other"
        assert EXPORTER in await daemon_sets(cluster)


@virtual
async def test_a_change_that_leaves_the_policy_ready_is_reported_as_seen(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await policy(cluster)
        await cluster.pass_time(5)
        await make_ready(cluster)
        await cluster.pass_time(10)
        assert (await status(cluster))[0] == "ready"
        await cluster.patch(CLUSTER_POLICIES, "cluster-policy", {"spec": {"dcgmExporter": {"enabled": False}}})
        await cluster.pass_time(10)
        found = await cluster.get(CLUSTER_POLICIES, "cluster-policy")
        assert EXPORTER not in await daemon_sets(cluster)
        assert found["status"]["state"] == "ready"
        seen = {one["observedGeneration"] for one in found["status"]["conditions"]}
        assert seen == {found["metadata"]["generation"]}


@virtual
async def test_a_runtime_class_of_the_distribution_is_used_and_survives_the_policy(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path, starts=False) as cluster:
        await cluster.create(RUNTIME_CLASSES, {"metadata": {"name": "nvidia"}, "handler": "nvidia"})
        start_operator(cluster)
        await policy(cluster)
        await cluster.pass_time(5)
        await make_ready(cluster)
        await cluster.pass_time(6)
        assert (await status(cluster))[0] == "ready"
        meta = (await cluster.get(RUNTIME_CLASSES, "nvidia"))["metadata"]
        assert "ownerReferences" not in meta
        assert "labels" not in meta
        assert "ownerReferences" in (await cluster.get(RUNTIME_CLASSES, "nvidia-cdi"))["metadata"]


@virtual
async def test_a_runtime_class_of_another_handler_is_named_and_not_changed(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path, starts=False) as cluster:
        await cluster.create(RUNTIME_CLASSES, {"metadata": {"name": "nvidia"}, "handler": "other"})
        start_operator(cluster)
        await policy(cluster)
        await cluster.pass_time(5)
        state, reason, message = await status(cluster)
        assert (state, reason) == ("notReady", "ReconcileFailed")
        assert message.startswith("RuntimeClass nvidia: exists, was not created by the operator and has other content")
        assert (await cluster.get(RUNTIME_CLASSES, "nvidia"))["handler"] == "other"


@virtual
async def test_the_oldest_policy_applies_and_the_other_is_ignored_until_it_is_deleted(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await policy(cluster)
        await cluster.pass_time(2)
        await policy(cluster, {"dcgmExporter": {"enabled": False}}, "second")
        await cluster.pass_time(5)
        assert (await status(cluster, "second"))[0] == "ignored"
        assert "only one ClusterPolicy is applied, and that is cluster-policy" in (await status(cluster, "second"))[2]
        assert EXPORTER in await daemon_sets(cluster)
        await cluster.delete(CLUSTER_POLICIES, "cluster-policy")
        await cluster.pass_time(5)
        assert (await status(cluster, "second"))[0] == "notReady"
        assert EXPORTER not in await daemon_sets(cluster)


@virtual
async def test_a_policy_of_the_wrong_group_is_applied_with_a_warning(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        spec = {"devicePlugin": {"config": {"name": "time-slicing-config", "default": "any"}}}
        await cluster.create(MISPLACED_CLUSTER_POLICIES, {"metadata": {"name": "gpu-cluster-policy"}, "spec": spec})
        await cluster.pass_time(5)
        pod = (await cluster.get(DAEMON_SETS, PLUGIN, SPACE))["spec"]["template"]["spec"]
        assert {"name": "DEFAULT_CONFIG", "value": "any"} in pod["containers"][0]["env"]
        warnings = dict(await _warnings(cluster, "gpu-cluster-policy"))
        assert "change its apiVersion to nvidia.com/v1" in warnings["WrongGroup"]


@virtual
async def test_a_misspelled_field_is_an_event_once(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await policy(cluster, {"dcgmExporter": {"serviceMonitr": {"enabled": True}}})
        await cluster.pass_time(60)
        found = [one for one in await cluster.events("cluster-policy") if one["reason"] == "NoEffect"]
        assert [(one["message"], one["count"]) for one in found] == [
            ("spec.dcgmExporter.serviceMonitr: unknown field; did you mean serviceMonitor?; it has no effect", 1)
        ]


@virtual
async def test_a_policy_with_a_wrong_value_changes_nothing_and_says_where(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await policy(cluster)
        await cluster.pass_time(5)
        before = await daemon_sets(cluster)
        await cluster.patch(
            CLUSTER_POLICIES, "cluster-policy", {"spec": {"driver": {"upgradePolicy": {"maxUnavailable": "some"}}}}
        )
        await cluster.pass_time(5)
        state, reason, message = await status(cluster)
        assert (state, reason) == ("notReady", "ReconcileFailed")
        assert message.startswith('spec.driver.upgradePolicy.maxUnavailable: "some" is neither')
        assert await daemon_sets(cluster) == before


@virtual
async def test_without_gpus_the_policy_is_ready(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path, nodes=0) as cluster:
        await policy(cluster)
        await cluster.pass_time(5)
        assert (await status(cluster))[:2] == ("ready", "NFDLabelsMissing")
        await cluster.create(NODES, {"metadata": {"name": "cpu", "labels": {"feature.node.kubernetes.io/x": "y"}}})
        await cluster.pass_time(5)
        assert (await status(cluster))[:2] == ("ready", "NoGPUNodes")
        assert DRIVER not in await daemon_sets(cluster)
        await cluster.create(NODES, gpu_node("gpu-0"))
        await cluster.pass_time(5)
        assert DRIVER in await daemon_sets(cluster)


@virtual
async def test_without_a_policy_the_labels_are_removed_again(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        before = (await cluster.get(NODES, "gpu-0"))["metadata"]
        await policy(cluster)
        await cluster.pass_time(5)
        assert (await cluster.get(NODES, "gpu-0"))["metadata"]["labels"] != before["labels"]
        await cluster.delete(CLUSTER_POLICIES, "cluster-policy")
        await cluster.pass_time(5)
        after = (await cluster.get(NODES, "gpu-0"))["metadata"]
        assert (after["labels"], after.get("annotations")) == (before["labels"], before.get("annotations"))


@virtual
async def test_labels_that_a_node_had_before_the_operator_stay_when_the_policy_is_deleted(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        former = {"nvidia.com/gpu.deploy.driver": "false", "nvidia.com/gpu.present": "true"}
        await cluster.patch(NODES, "gpu-0", {"metadata": {"labels": former}}, namespace="")
        before = (await cluster.get(NODES, "gpu-0"))["metadata"]
        await policy(cluster)
        await cluster.pass_time(5)
        assert (await cluster.get(NODES, "gpu-0"))["metadata"]["labels"].keys() > before["labels"].keys()
        await cluster.delete(CLUSTER_POLICIES, "cluster-policy")
        await cluster.pass_time(5)
        after = (await cluster.get(NODES, "gpu-0"))["metadata"]
        assert (after["labels"], after.get("annotations")) == (before["labels"], before.get("annotations"))


@virtual
async def test_a_config_map_of_the_driver_that_is_created_later_is_used(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await policy(cluster, {"driver": {"certConfig": {"name": "certs"}}})
        await cluster.pass_time(5)
        assert "ConfigMap gpu-operator/certs, which spec.driver names, not found" in (await status(cluster))[2]
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "certs"}, "data": {"ca.crt": "x"}}, SPACE)
        await cluster.pass_time(10)
        mounts = (await cluster.get(DAEMON_SETS, DRIVER, SPACE))["spec"]["template"]["spec"]["containers"][0][
            "volumeMounts"
        ]
        assert "/usr/local/share/ca-certificates/ca.crt" in [one["mountPath"] for one in mounts]


@virtual
async def test_a_changed_config_map_of_the_driver_is_used_at_once(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "certs"}, "data": {"a.crt": "x"}}, SPACE)
        await policy(cluster, {"driver": {"certConfig": {"name": "certs"}}})
        await cluster.pass_time(5)
        await make_ready(cluster)
        await cluster.pass_time(10)
        assert (await status(cluster))[0] == "ready"
        await cluster.patch(CONFIG_MAPS, "certs", {"data": {"b.crt": "y"}}, namespace=SPACE)
        await cluster.pass_time(1)
        pod = (await cluster.get(DAEMON_SETS, DRIVER, SPACE))["spec"]["template"]["spec"]
        paths = [one["mountPath"] for one in pod["containers"][0]["volumeMounts"]]
        assert {"/usr/local/share/ca-certificates/a.crt", "/usr/local/share/ca-certificates/b.crt"} <= {*paths}


@virtual
async def test_a_second_operating_system_without_a_driver_is_an_event(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path, nodes=2) as cluster:
        other = gpu_node("rhel-0")
        other["status"]["nodeInfo"]["osImage"] = "Red Hat Enterprise Linux 9.4 (Plow)"
        await cluster.create(NODES, other)
        await policy(cluster)
        await cluster.pass_time(5)
        assert "it does not work on node rhel-0" in dict(await _warnings(cluster))["SeveralOperatingSystems"]


@virtual
async def test_a_config_map_that_is_missing_or_has_no_effect_is_an_event(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path, nodes=2) as cluster:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "sharing"}, "data": {"any": "version: v1"}}, SPACE)
        config = {"devicePlugin": {"config": {"name": "sharing"}}, "migManager": {"config": {"name": "layouts"}}}
        await policy(cluster, config)
        await cluster.pass_time(5)
        warnings = dict(await _warnings(cluster))
        assert warnings["ConfigMapNotFound"] == "spec.migManager.config names ConfigMap layouts: no such one"
        assert warnings["NoDefaultConfig"] == (
            "spec.devicePlugin.config names ConfigMap sharing and no default: no effect on 2 of 2 GPU nodes, which "
            "lack the label nvidia.com/device-plugin.config"
        )


@virtual
async def test_the_metrics_follow_the_state_of_the_policy(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path, starts=False) as cluster:
        context = cluster.context("shoal-operator")
        served = Served(context)
        operator = operator_controller(context, served, SETTINGS)
        registry = Registry()
        measure_operator(registry, operator.figures)

        def value(name: str) -> float:
            return next(one.numbers[0][1] for one in registry.read() if one.head.name == f"gpu_operator_{name}")

        assert value("reconciliation_status") == -1
        cluster.tasks += [asyncio.ensure_future(served.run()), asyncio.ensure_future(operator.run())]
        await policy(cluster)
        await cluster.pass_time(5)
        assert (value("gpu_nodes_total"), value("reconciliation_status")) == (1, 0)
        assert (value("reconciliation_last_success_ts_seconds"), value("reconciliation_has_nfd_labels")) == (0, 1)
        await make_ready(cluster)
        await cluster.pass_time(5)
        assert value("reconciliation_status") == 1
        assert value("reconciliation_last_success_ts_seconds") > 0
        await cluster.patch(
            CLUSTER_POLICIES, "cluster-policy", {"spec": {"driver": {"upgradePolicy": {"maxUnavailable": "x"}}}}
        )
        await cluster.pass_time(5)
        assert value("reconciliation_status") == 0
        assert 0 < value("reconciliation_failed_total") < value("reconciliation_total")
