"""The series of CronJobs, PersistentVolumes and HorizontalPodAutoscalers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.item import Item
from shoal.client.kind import AUTOSCALERS, CRON_JOBS, VOLUMES
from shoal.telemetry.kube_state.autoscalers import autoscaler_series
from shoal.telemetry.kube_state.cron_jobs import cron_job_series
from shoal.telemetry.kube_state.exposition import KINDS, KubeStateText
from shoal.telemetry.kube_state.volumes import volume_series

CREATED, CREATED_S = "2026-01-01T00:00:30Z", 1767225630


def of(
    read: Callable[[Item], dict[str, list[str]]], spec: dict[str, Any], status: dict[str, Any] | None = None
) -> set[str]:
    meta = {"name": "x", "namespace": "ml", "uid": "u", "resourceVersion": "1", "creationTimestamp": CREATED}
    body = msgspec.json.encode({"metadata": meta, "spec": spec, "status": status or {}})
    return {line for lines in read(Item("ml", "x", "u", 1, body)).values() for line in lines}


def test_a_cron_job_tells_its_schedule_and_when_it_started() -> None:
    spec = {"schedule": "0 * * * *", "concurrencyPolicy": "Forbid", "failedJobsHistoryLimit": 1}
    status = {"active": [{"name": "x-1"}], "lastScheduleTime": "2026-01-01T05:00:00Z"}
    found = of(cron_job_series, spec, status)
    own = 'namespace="ml",cronjob="x"'
    assert {
        f'kube_cronjob_info{{{own},schedule="0 * * * *",concurrency_policy="Forbid",timezone="local"}} 1',
        f"kube_cronjob_created{{{own}}} {CREATED_S}",
        f"kube_cronjob_spec_suspend{{{own}}} 0",
        f"kube_cronjob_spec_failed_job_history_limit{{{own}}} 1",
        f"kube_cronjob_status_active{{{own}}} 1",
        f"kube_cronjob_status_last_schedule_time{{{own}}} 1767243600",
        f"kube_cronjob_next_schedule_time{{{own}}} 1767247200",
    } <= found
    assert not any("starting_deadline" in line or "last_successful" in line for line in found)


@pytest.mark.parametrize(
    ("spec", "next_s"),
    [
        pytest.param({"schedule": "0 6 * * *"}, 1767247200, id="it never started: after its creation"),
        pytest.param({"schedule": "0 6 * * *", "timeZone": "Europe/Berlin"}, 1767243600, id="in its time zone"),
        pytest.param({"schedule": "0 6 * * *", "suspend": True}, None, id="it is suspended"),
        pytest.param({"schedule": "whenever"}, None, id="the schedule cannot be read"),
        pytest.param({"schedule": "0 6 * * *", "timeZone": "Nowhere/None"}, None, id="an unknown time zone"),
    ],
)
def test_the_next_start_of_a_cron_job(spec: dict[str, Any], next_s: int | None) -> None:
    found = [line.split()[-1] for line in of(cron_job_series, spec) if line.startswith("kube_cronjob_next")]
    assert found == ([] if next_s is None else [str(next_s)])


def test_a_volume_tells_its_claim_its_size_and_its_phase() -> None:
    spec = {
        "capacity": {"storage": "1Ti"},
        "storageClassName": "fast",
        "volumeMode": "Filesystem",
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"name": "data", "namespace": "ml"},
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
    }
    found = of(volume_series, spec, {"phase": "Bound"})
    own = 'persistentvolume="x"'
    assert {
        f'kube_persistentvolume_claim_ref{{{own},name="data",claim_namespace="ml"}} 1',
        f"kube_persistentvolume_capacity_bytes{{{own}}} {2**40}",
        f'kube_persistentvolume_volume_mode{{{own},volumemode="Filesystem"}} 1',
        f'kube_persistentvolume_status_phase{{{own},phase="Bound"}} 1',
        f'kube_persistentvolume_status_phase{{{own},phase="Failed"}} 0',
    } <= found
    (info,) = [line for line in found if line.startswith("kube_persistentvolume_info")]
    for part in ('storageclass="fast"', 'csi_volume_handle="vol-1"', 'reclaim_policy="Retain"', 'nfs_server=""'):
        assert part in info


def test_an_autoscaler_tells_its_limits_its_target_and_why_it_does_not_scale() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve"}
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
        {"type": "Pods", "pods": {"metric": {"name": "queue"}, "target": {"averageValue": "500m"}}},
    ]
    current = [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "2", "averageUtilization": 9}}}
    ]
    condition = {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}
    status = {"currentReplicas": 3, "desiredReplicas": 5, "currentMetrics": current, "conditions": [condition]}
    found = of(autoscaler_series, {"scaleTargetRef": target, "maxReplicas": 5, "metrics": metrics}, status)
    own, kind = 'namespace="ml",horizontalpodautoscaler="x"', "kube_horizontalpodautoscaler"
    about = 'scaletargetref_api_version="apps/v1",scaletargetref_kind="Deployment",scaletargetref_name="serve"'
    assert {
        f"{kind}_info{{{own},{about}}} 1",
        f"{kind}_spec_min_replicas{{{own}}} 1",
        f"{kind}_spec_max_replicas{{{own}}} 5",
        f"{kind}_status_current_replicas{{{own}}} 3",
        f"{kind}_status_desired_replicas{{{own}}} 5",
        f'{kind}_spec_target_metric{{{own},metric_name="cpu",metric_target_type="utilization"}} 80',
        f'{kind}_spec_target_metric{{{own},metric_name="queue",metric_target_type="average"}} 0.5',
        f'{kind}_status_target_metric{{{own},metric_name="cpu",metric_target_type="average"}} 2',
        f'{kind}_status_target_metric{{{own},metric_name="cpu",metric_target_type="utilization"}} 9',
        f'{kind}_status_condition{{{own},condition="ScalingLimited",status="true"}} 1',
        f'{kind}_status_condition{{{own},condition="ScalingLimited",status="false"}} 0',
    } <= found


@virtual
async def test_a_cluster_serves_them(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        pod = {"containers": [{"name": "a", "image": "x"}], "restartPolicy": "Never"}
        job = {"spec": {"template": {"spec": pod}}}
        await cluster.create(
            CRON_JOBS, {"metadata": {"name": "nightly"}, "spec": {"schedule": "0 3 * * *", "jobTemplate": job}}
        )
        volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
        await cluster.create(VOLUMES, {"metadata": {"name": "disk"}, "spec": volume})
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve"}
        await cluster.create(
            AUTOSCALERS, {"metadata": {"name": "serve"}, "spec": {"scaleTargetRef": target, "maxReplicas": 4}}
        )
        context = cluster.context()
        served = KubeStateText(context.informers)
        await context.informers.synced(KINDS)
        text = served.text()
        assert 'kube_cronjob_next_schedule_time{namespace="default",cronjob="nightly"}' in text
        assert 'kube_persistentvolume_capacity_bytes{persistentvolume="disk"} 1073741824' in text
        assert (
            'kube_horizontalpodautoscaler_spec_max_replicas{namespace="default",horizontalpodautoscaler="serve"} 4'
            in text
        )
