"""Alerts: which series fire them and which do not, by Prometheus' own tool; and that each names what it is about."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from build.promtool import PROMTOOL
from shoal.policy.alert_rules import ALERTS, prometheus_rule, rule_groups

GPU = 'gpu="0",UUID="GPU-1",Hostname="n-0",namespace="team",pod="train-0"'
OTHER = GPU.replace('gpu="0",UUID="GPU-1"', 'gpu="1",UUID="GPU-2"')
TEMP, USE, NVLINK = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"
USED, FREE, RESERVED = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED"
XID = "DCGM_FI_DEV_XID_ERRORS"
Series = dict[str, str]


def one(metric: str, values: str, labels: str = GPU) -> Series:
    return {f"{metric}{{{labels}}}": values}


def memory(used: int, free: int, reserved: int | None = None) -> Series:
    found = one(USED, f"{used}x60") | one(FREE, f"{free}x60")
    return found if reserved is None else found | one(RESERVED, f"{reserved}x60")


def leaking(step: int) -> Series:
    return one(USED, f"78000+{step}x80") | one(FREE, f"3000-{step}x80")


def stalled(*labels: str, use: int = 100, traffic: str = "0+90x60 5400x80") -> Series:
    found: Series = {}
    for each in labels:
        found |= one(NVLINK, traffic, each) | one(USE, f"{use}x200", each)
    return found


def waits(le_1800: str, all_of_them: str) -> Series:
    name = "kueue_admission_wait_time_seconds_bucket"
    return {
        f'{name}{{cluster_queue="gold",le="1800"}}': le_1800,
        f'{name}{{cluster_queue="gold",le="3600"}}': all_of_them,
        f'{name}{{cluster_queue="gold",le="+Inf"}}': all_of_them,
    }


def quota(pending: int, reserved: int) -> Series:
    of = 'cluster_queue="gold",resource="nvidia.com/gpu"'
    return (
        one("kueue_cluster_queue_resource_pending", f"{pending}x100", of)
        | one("kueue_cluster_queue_resource_reservation", f"{reserved}x100", of + ',flavor="h100"')
        | one("kueue_cluster_queue_nominal_quota", "8x100", of + ',flavor="h100"')
    )


def states(broken_up: int) -> Series:
    return one("shoal_gpus", f"{broken_up}x100", 'state="broken_up"') | one("shoal_gpus", "8x100", 'state="used"')


FIRES: list[tuple[str, Series, str]] = [
    ("GPUHighTemperature", one(TEMP, "86x20"), "5m"),
    ("GPULowUtilization", one(USE, "9x100"), "30m"),
    ("LowGPUUtilization", one(USE, "19x500"), "2h"),
    ("GPUUnderutilized", one(USE, "19x500"), "4h"),
    ("GPUHighUtilization", one(USE, "96x100"), "30m"),
    ("HighGPUMemoryUsage", memory(91, 9), "6m"),
    ("GPUMemoryAlmostFull", memory(96, 4), "6m"),
    ("GPUMemoryAlmostFull", memory(96, 2, 2), "6m"),
    ("GPUMemoryLeaking", leaking(10), "30m"),
    ("GPUXIDError", one(XID, "0x10 31x20"), "7m"),
    # The labels of the error change with it.
    ("GPUXIDError", one(XID, "0x10 _x20") | one(XID, "_x10 48x20", GPU + ',err_code="48"'), "7m"),
    ("NCCLTrainingStalled", stalled(GPU, OTHER), "50m"),
    ("GPUIdleWhileHeld", one(USE, "2x600"), "4h10m"),
    ("QueueAdmissionSlow", waits("0+1x200", "0+10x200"), "1h"),
    ("QuotaNotReturned", quota(4, 2), "31m"),
    ("GPUFragmentationHigh", states(4), "31m"),
]
DOES_NOT: list[tuple[str, Series, str]] = [
    ("GPUHighTemperature", one(TEMP, "86x20"), "4m30s"),
    ("GPUHighTemperature", one(TEMP, "85x20"), "10m"),
    ("GPULowUtilization", one(USE, "10x100"), "40m"),
    ("GPULowUtilization", one(USE, "9x30 50 9x30"), "30m"),
    ("LowGPUUtilization", one(USE, "21x500"), "3h"),
    ("GPUUnderutilized", one(USE, "19x500"), "3h59m"),
    ("GPUHighUtilization", one(USE, "95x100"), "40m"),
    # 60 percent: used divided by free would be 1.5.
    ("HighGPUMemoryUsage", memory(60, 40), "10m"),
    ("GPUMemoryAlmostFull", memory(60, 40), "10m"),
    ("GPUMemoryAlmostFull", memory(94, 2, 4), "10m"),
    ("GPUMemoryLeaking", leaking(0), "30m"),
    ("GPUMemoryLeaking", one(USED, "1000+10x80") | one(FREE, "79000-10x80"), "30m"),
    ("GPUXIDError", one(XID, "0x60"), "10m"),
    # Once: the gauge keeps the last error.
    ("GPUXIDError", one(XID, "0x10 31x60"), "20m"),
    ("NCCLTrainingStalled", stalled(GPU), "50m"),
    ("NCCLTrainingStalled", stalled(GPU, OTHER, traffic="0x200"), "50m"),
    ("NCCLTrainingStalled", stalled(GPU, OTHER, traffic="0+90x200"), "50m"),
    ("NCCLTrainingStalled", stalled(GPU, OTHER, use=0), "50m"),
    ("GPUIdleWhileHeld", one(USE, "2x600", 'gpu="0",UUID="GPU-1",Hostname="n-0",namespace="",pod=""'), "4h10m"),
    ("GPUIdleWhileHeld", one(USE, "30x600"), "4h10m"),
    ("QueueAdmissionSlow", waits("0+10x200", "0+10x200"), "1h"),
    ("QuotaNotReturned", quota(0, 2), "40m"),
    ("QuotaNotReturned", quota(4, 8), "40m"),
    ("GPUFragmentationHigh", states(1), "40m"),
]


def checked(folder: Path, cases: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    assert PROMTOOL is not None
    (folder / "rules.yaml").write_bytes(msgspec.yaml.encode({"groups": rule_groups()}))
    written = {"rule_files": ["rules.yaml"], "evaluation_interval": "30s", "tests": cases}
    (folder / "tests.yaml").write_bytes(msgspec.yaml.encode(written))
    command = [PROMTOOL, "test", "rules", "tests.yaml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def case(name: str, series: Series, at: str, *, fires: bool) -> dict[str, Any]:
    found = f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) > bool 0 or vector(0)'
    samples = [{"labels": "{}", "value": 1 if fires else 0}]
    return {
        "name": f"{name} at {at}: {fires}",
        "interval": "30s",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [{"expr": found, "eval_time": at, "exp_samples": samples}],
    }


@pytest.mark.external("promtool")
def test_every_alert_fires_when_it_should_and_not_otherwise(tmp_path: Path) -> None:
    cases = [case(*one, fires=True) for one in FIRES] + [case(*one, fires=False) for one in DOES_NOT]
    done = checked(tmp_path, cases)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.external("promtool")
def test_a_case_that_is_wrong_would_be_noticed(tmp_path: Path) -> None:
    name, series, at = FIRES[0]
    assert checked(tmp_path, [case(name, series, at, fires=False)]).returncode == 1


@pytest.mark.external("promtool")
def test_the_texts_of_alerts_name_what_they_are_about(tmp_path: Path) -> None:
    # Without an expected alert promtool prints those that there are.
    cases = [
        {
            "interval": "30s",
            "input_series": [{"series": key, "values": values} for key, values in series.items()],
            "alert_rule_test": [{"eval_time": at, "alertname": name, "exp_alerts": []}],
        }
        for name, series, at in FIRES
    ]
    done = checked(tmp_path, cases)
    text = done.stdout + done.stderr
    assert text.count("alertname=") >= len(FIRES)
    assert "no value" not in text
    assert "error expanding" not in text
    for words in (
        "GPU 0 of n-0 has 86 degrees, held by team/train-0.",
        "96% of the memory of GPU 0 of n-0 is used, held by team/train-0.",
        "GPU 0 of n-0 reports Xid 31",
        "shoal xid 48 says",
        "Pod team/train-0 may have stalled",
        "33.33% of all GPUs are the free rest of partly used GPUs.",
        "Workloads of ClusterQueue gold wait for 4 nvidia.com/gpu; its own quota is unused.",
    ):
        assert words in text, words


def test_both_lists_have_every_alert() -> None:
    names = {one.name for one in ALERTS}
    assert {name for name, *_ in FIRES} == names
    assert {name for name, *_ in DOES_NOT} == names


def test_names_are_unique_and_every_alert_has_a_runbook() -> None:
    assert len({one.name for one in ALERTS}) == len(ALERTS)
    assert all(one.runbook and one.summary and one.description for one in ALERTS)


def test_every_metric_is_on_the_page_of_metrics() -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    used = {
        word.removesuffix("_bucket")
        for one in ALERTS
        for word in re.findall(r"\b(?:DCGM_|kueue_|shoal_)\w+", one.expression)
    }
    assert len(used) > 5
    assert {word for word in used if f"`{word}`" not in page} == set()


def test_every_alert_is_on_the_page_of_alerts_with_its_expression_time_and_severity() -> None:
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text(encoding="utf-8")
    for one in ALERTS:
        assert f"| `{one.name}` | {one.severity} | {one.lasting} |" in page


def test_the_object_of_the_prometheus_operator_has_the_labels_that_select_it() -> None:
    found = prometheus_rule("a", "b", {"release": "prom"})
    assert found["metadata"] == {"name": "a", "namespace": "b", "labels": {"release": "prom"}}
    assert found["spec"] == {"groups": rule_groups()}
    assert "labels" not in prometheus_rule("a", "b", {})["metadata"]
