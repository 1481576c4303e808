"""The series of kube-state-metrics: names, labels and values, and the rules that people join them in."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from build.promtool import PROMTOOL, faults
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import NAMESPACES, NODES, PODS
from shoal.prometheus.promql.evaluation import Evaluation
from shoal.prometheus.promql.parser import parsed
from shoal.prometheus.promql.scraped import TextReader
from shoal.prometheus.promql.series import SeriesStore
from shoal.prometheus.promql.trees import selectors
from shoal.telemetry.kube_state.exposition import KubeStateText
from shoal.telemetry.kube_state.series import add

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
        await context.informers.synced((PODS, NODES, NAMESPACES))
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
        await context.informers.synced((PODS, NODES, NAMESPACES))
        assert "train-0" in served.text()
        await cluster.patch(PODS, "train-0", {"metadata": {"labels": {"maxUnits": "5"}}})
        await cluster.pass_time(1)
        assert 'label_max_units="5"' in served.text()
        await cluster.delete(PODS, "train-0")
        await cluster.until(lambda: "train-0" not in served.text())


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
        await context.informers.synced((PODS, NODES, NAMESPACES))
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
        await context.informers.synced((PODS, NODES, NAMESPACES))
        problems = [line for line in faults(served.text().encode()).splitlines() if "error" in line]
        assert problems == []
