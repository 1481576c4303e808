"""The series of kube-state-metrics: names, labels and values, and the rules that people join them in."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from build.promtool import PROMTOOL, faults
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.item import Item
from shoal.client.kind import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    RESOURCE_QUOTAS,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
)
from shoal.prometheus.promql.evaluation import Evaluation
from shoal.prometheus.promql.parser import parsed
from shoal.prometheus.promql.scraped import TextReader
from shoal.prometheus.promql.series import SeriesStore
from shoal.prometheus.promql.trees import selectors
from shoal.telemetry.kube_state.exposition import KINDS, KubeStateText
from shoal.telemetry.kube_state.pods import pod_series
from shoal.telemetry.kube_state.quotas_and_claims import resource_quota_series
from shoal.telemetry.kube_state.series import add
from shoal.telemetry.kube_state.workloads import (
    daemon_set_series,
    deployment_series,
    job_series,
    replica_set_series,
    stateful_set_series,
)

POD: dict[str, Any] = {
    "metadata": {
        "name": "train-0",
        "labels": {"app.kubernetes.io/name": "train", "maxUnits": "4", "a.b": "1", "a-b": "2"},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": True}],
    },
    "spec": {
        "nodeName": "n1",
        "priorityClassName": "",
        "containers": [
            {
                "name": "main",
                "image": "x:1",
                "resources": {
                    "requests": {"cpu": "500m", "memory": "2Gi"},
                    "limits": {"nvidia.com/gpu": "2", "memory": "4Gi"},
                },
            }
        ],
    },
}
NODE: dict[str, Any] = {
    "metadata": {"name": "n1", "labels": {"node-role.kubernetes.io/gpu": "", "zone": "a"}},
    "spec": {"unschedulable": True, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"nvidia.com/gpu": "8", "cpu": "96", "memory": "1Ti"},
        "allocatable": {"nvidia.com/gpu": "7", "cpu": "95500m"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


class Shown:
    def __init__(self, text: str) -> None:
        self.text = text

    def value(self, expression: str) -> float:
        """Of the one series that it selects."""
        tree = parsed(expression)
        store = SeriesStore({one.name: 0 for one in selectors(tree)})
        store.scrape("text", 0, TextReader(store).values(self.text))
        (part,) = Evaluation(store).vector(tree, 0)
        return part.value


@virtual
async def test_the_series_that_rules_join_are_those_of_kube_state_metrics(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, deepcopy(NODE))
        await cluster.create(PODS, deepcopy(POD))
        context = cluster.context()
        served = KubeStateText(context.informers)
        await context.informers.synced(KINDS)
        shown = Shown(served.text())
        assert shown.value('kube_pod_info{pod="train-0",node="n1",created_by_kind="Job",created_by_name="train"}') == 1
        assert shown.value('kube_pod_owner{owner_kind="Job",owner_is_controller="true"}') == 1
        assert shown.value('kube_pod_labels{label_app_kubernetes_io_name="train",label_max_units="4"}') == 1
        assert shown.value('kube_pod_labels{label_a_b_conflict1="2",label_a_b_conflict2="1"}') == 1
        requests = "kube_pod_container_resource_requests"
        assert shown.value(f'{requests}{{container="main",resource="nvidia_com_gpu",unit="integer",node="n1"}}') == 2
        assert shown.value(f'{requests}{{resource="cpu",unit="core"}}') == 0.5
        assert shown.value(f'{requests}{{resource="memory",unit="byte"}}') == 2**31
        assert shown.value('kube_pod_container_resource_limits{resource="memory"}') == 2**32
        assert shown.value('kube_pod_status_phase{phase="Pending"}') == 1
        assert shown.value('kube_pod_status_phase{phase="Running"}') == 0
        assert shown.value('kube_node_status_allocatable{resource="nvidia_com_gpu"}') == 7
        assert shown.value('kube_node_status_allocatable{resource="cpu"}') == 95.5
        assert shown.value('kube_node_status_capacity{resource="nvidia_com_gpu",unit="integer"}') == 8
        assert shown.value("kube_node_spec_unschedulable") == 1
        assert shown.value('kube_node_spec_taint{key="k",effect="NoSchedule"}') == 1
        assert shown.value('kube_node_status_condition{condition="Ready",status="true"}') == 1
        assert shown.value('kube_node_role{role="gpu"}') == 1
        assert shown.value('kube_namespace_status_phase{namespace="default",phase="Active"}') == 1
        joined = (
            "sum by (label_app_kubernetes_io_name) (kube_pod_container_resource_requests{resource='nvidia_com_gpu'}"
        )
        joined += " * on (namespace, pod) group_left (label_app_kubernetes_io_name) kube_pod_labels)"
        assert shown.value(joined) == 2


@virtual
async def test_changes_are_seen_and_objects_that_are_gone_have_no_series(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(PODS, {**deepcopy(POD), "spec": {"containers": deepcopy(POD["spec"]["containers"])}})
        context = cluster.context()
        served = KubeStateText(context.informers)
        await context.informers.synced(KINDS)
        assert "train-0" in served.text()
        await cluster.patch(PODS, "train-0", {"metadata": {"labels": {"maxUnits": "5"}}})
        await cluster.pass_time(1)
        assert 'label_max_units="5"' in served.text()
        await cluster.delete(PODS, "train-0")
        await cluster.until(lambda: "train-0" not in served.text())


@virtual
async def test_workloads_quotas_and_claims_of_a_cluster_have_series(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        spec = {"containers": [{"name": "a", "image": "x"}]}
        template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
        selector = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        meta = {"name": "one", "labels": {"team": "ml"}}
        await cluster.create(DEPLOYMENTS, {"metadata": {**meta}, "spec": {**deepcopy(selector), "replicas": 3}})
        await cluster.create(
            STATEFUL_SETS, {"metadata": {**meta}, "spec": {**deepcopy(selector), "replicas": 2, "serviceName": "s"}}
        )
        await cluster.create(DAEMON_SETS, {"metadata": {**meta}, "spec": deepcopy(selector)})
        job = {"parallelism": 4, "template": {"spec": {**spec, "restartPolicy": "Never"}}}
        await cluster.create(JOBS, {"metadata": {**meta}, "spec": job})
        await cluster.create(
            RESOURCE_QUOTAS, {"metadata": {**meta}, "spec": {"hard": {"requests.nvidia.com/gpu": "8"}}}
        )
        claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        await cluster.create(VOLUME_CLAIMS, {"metadata": {**meta}, "spec": {**claim, "storageClassName": "fast"}})
        context = cluster.context()
        served = KubeStateText(context.informers)
        await context.informers.synced(KINDS)
        shown = Shown(served.text())
        assert shown.value('kube_deployment_spec_replicas{namespace="default",deployment="one"}') == 3
        assert shown.value('kube_statefulset_replicas{statefulset="one"}') == 2
        assert shown.value('kube_daemonset_status_desired_number_scheduled{daemonset="one"}') == 0
        assert shown.value('kube_job_spec_parallelism{job_name="one"}') == 4
        assert shown.value('kube_job_labels{job_name="one",label_team="ml"}') == 1
        assert shown.value('kube_persistentvolumeclaim_status_phase{persistentvolumeclaim="one",phase="Pending"}') == 1
        storage = "kube_persistentvolumeclaim_resource_requests_storage_bytes"
        assert shown.value(f'{storage}{{namespace="default"}}') == 2**30
        assert shown.value('kube_persistentvolumeclaim_info{storageclass="fast"}') == 1
        assert shown.value('kube_persistentvolumeclaim_access_mode{access_mode="ReadWriteMany"}') == 1


def of(read: Callable[[Item], dict[str, list[str]]], spec: dict[str, Any], status: dict[str, Any]) -> set[str]:
    meta = {"name": "x", "namespace": "ml", "uid": "u", "resourceVersion": "1", "generation": 7}
    body = msgspec.json.encode({"metadata": meta, "spec": spec, "status": status})
    return {line for lines in read(Item("ml", "x", "u", 1, body)).values() for line in lines}


def test_replicas_are_told_as_the_status_has_them() -> None:
    status = {"replicas": 5, "readyReplicas": 3, "availableReplicas": 2, "unavailableReplicas": 3, "updatedReplicas": 4}
    condition = {"type": "Available", "status": "False"}
    found = of(deployment_series, {"replicas": 5, "paused": True}, {**status, "conditions": [condition]})
    own = 'namespace="ml",deployment="x"'
    assert {
        f"kube_deployment_spec_paused{{{own}}} 1",
        f"kube_deployment_metadata_generation{{{own}}} 7",
        f"kube_deployment_status_replicas{{{own}}} 5",
        f"kube_deployment_status_replicas_ready{{{own}}} 3",
        f"kube_deployment_status_replicas_available{{{own}}} 2",
        f"kube_deployment_status_replicas_unavailable{{{own}}} 3",
        f"kube_deployment_status_replicas_updated{{{own}}} 4",
        f'kube_deployment_status_condition{{{own},condition="Available",status="false"}} 1',
        f'kube_deployment_status_condition{{{own},condition="Available",status="true"}} 0',
    } <= found
    found = of(stateful_set_series, {}, {**status, "currentReplicas": 1})
    own = 'namespace="ml",statefulset="x"'
    assert {f"kube_statefulset_replicas{{{own}}} 1", f"kube_statefulset_status_replicas_current{{{own}}} 1"} <= found
    found = of(replica_set_series, {"replicas": 2}, {**status, "fullyLabeledReplicas": 5})
    own = 'namespace="ml",replicaset="x"'
    assert f"kube_replicaset_status_fully_labeled_replicas{{{own}}} 5" in found
    assert f'kube_replicaset_owner{{{own},owner_kind="",owner_name="",owner_is_controller=""}} 1' in found
    counts = {"currentNumberScheduled": 4, "desiredNumberScheduled": 5, "numberReady": 3, "numberUnavailable": 2}
    found = of(daemon_set_series, {}, counts)
    own = 'namespace="ml",daemonset="x"'
    assert {
        f"kube_daemonset_status_desired_number_scheduled{{{own}}} 5",
        f"kube_daemonset_status_number_unavailable{{{own}}} 2",
        f"kube_daemonset_status_number_ready{{{own}}} 3",
    } <= found


def test_a_job_tells_how_it_ended() -> None:
    own = 'namespace="ml",job_name="x"'
    ended = {"succeeded": 3, "completionTime": "2026-01-01T00:00:00Z"}
    found = of(job_series, {"completions": 3}, {**ended, "conditions": [{"type": "Complete", "status": "True"}]})
    assert {
        f"kube_job_status_succeeded{{{own}}} 3",
        f"kube_job_spec_completions{{{own}}} 3",
        f"kube_job_status_completion_time{{{own}}} 1767225600",
        f'kube_job_complete{{{own},condition="true"}} 1',
        f'kube_job_status_failed{{{own},reason=""}} 0',
    } <= found
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    found = of(job_series, {}, {"failed": 2, "conditions": [failed]})
    assert {
        f'kube_job_failed{{{own},condition="true"}} 1',
        f'kube_job_status_failed{{{own},reason="BackoffLimitExceeded"}} 1',
        f'kube_job_status_failed{{{own},reason="DeadlineExceeded"}} 0',
    } <= found
    assert f'kube_job_status_failed{{{own},reason=""}} 2' in of(job_series, {}, {"failed": 2})


def test_a_quota_tells_what_it_allows_and_what_is_used() -> None:
    found = of(
        resource_quota_series, {}, {"hard": {"requests.nvidia.com/gpu": "8", "cpu": "1500m"}, "used": {"cpu": "1"}}
    )
    own = 'namespace="ml",resourcequota="x"'
    assert found == {
        f'kube_resourcequota{{{own},resource="requests.nvidia.com/gpu",type="hard"}} 8',
        f'kube_resourcequota{{{own},resource="cpu",type="hard"}} 1.5',
        f'kube_resourcequota{{{own},resource="cpu",type="used"}} 1',
    }


def test_a_pod_names_the_claims_of_its_volumes() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "set"}}, {"name": "tmp", "emptyDir": {}}]
    found = of(pod_series, {"volumes": volumes}, {})
    named = [line for line in found if line.startswith("kube_pod_spec_volumes_persistentvolumeclaims_info")]
    own = 'namespace="ml",pod="x",uid="u",volume="data",persistentvolumeclaim="set"'
    assert named == [f"kube_pod_spec_volumes_persistentvolumeclaims_info{{{own}}} 1"]


def test_quotes_backslashes_and_lines_are_escaped() -> None:
    found: dict[str, list[str]] = {}
    add(found, "a", [("b", 'x"y'), ("c", "\\"), ("d", "\n")], 2.5)
    assert found == {"a": [r'a{b="x\"y",c="\\",d="\n"} 2.5']}


@virtual
async def test_nothing_is_served_twice_where_kube_state_metrics_runs(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        meta = {"name": "ksm", "labels": {"app.kubernetes.io/name": "kube-state-metrics"}}
        await cluster.create(PODS, {"metadata": meta, "spec": {"containers": [{"name": "a", "image": "x"}]}})
        context = cluster.context()
        served = KubeStateText(context.informers)
        await context.informers.synced(KINDS)
        assert served.text() == "# kube-state-metrics runs in this cluster: its series are not served here\n"


@pytest.mark.external("promtool")
@virtual
async def test_prometheus_reads_the_text(tmp_path: Path) -> None:
    assert PROMTOOL
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, deepcopy(NODE))
        await cluster.create(PODS, deepcopy(POD))
        context = cluster.context()
        served = KubeStateText(context.informers)
        await context.informers.synced(KINDS)
        problems = [line for line in faults(served.text().encode()).splitlines() if "error" in line]
        assert problems == []
