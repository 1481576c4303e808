"""Rules about configurations: MIG layouts, counters, kube-scheduler, and the values of NodePools."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.policy.advice import Advice, Obj
from shoal.policy.object_set import ObjectSet
from shoal.policy.rules.gpu_configs import exporter_counters, possible_mig_layouts
from shoal.policy.rules.node_pools import pool_values
from shoal.policy.rules.schedulers import scheduler_files

NOTHING = ObjectSet(())


def layout(line: str) -> list[Advice]:
    text = f"version: v1\nmig-configs:\n  all-disabled: [{{devices: all, mig-enabled: false}}]\n  a: [{line}]\n"
    return list(possible_mig_layouts({"data": {"c": text}}, NOTHING))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{devices: all, mig-enabled: true, mig-devices: {"2g.10gb": 4}}', "4 x 2g.10gb do not fit"),
        ('{devices: all, mig-enabled: true, mig-devices: {"1g.6gb": 1, "1g.5gb": 1}}', "has all of the profiles"),
        ('{device: all, mig-enabled: true, mig-devices: {"1g.5gb": 1}}', "the MIG manager refuses the file"),
    ],
)
def test_a_layout_that_no_gpu_can_have_is_found(line: str, words: str) -> None:
    (one,) = layout(line)
    assert words in one.what


@pytest.mark.parametrize(
    ("name", "words"), [("3g.21gb", "MIG profile 3g.21gb; did you mean"), ("9g.400gb", "9g.400gb")]
)
def test_a_profile_that_the_tables_lack_is_a_warning(name: str, words: str) -> None:
    (one,) = layout(f'{{devices: all, mig-enabled: true, mig-devices: {{"{name}": 1}}}}')
    assert (one.reason, words in one.what) == ("UnlistedMigProfile", True)


def test_a_known_profile_of_other_gpus_than_those_of_the_filter_is_an_error() -> None:
    (one,) = layout('{devices: all, device-filter: ["0x20B710DE"], mig-enabled: true, mig-devices: {"1g.10gb": 7}}')
    assert (one.reason, one.what) == ("ImpossibleMigLayout", "no selected GPU has the MIG profile 1g.10gb")


@pytest.mark.parametrize("device", ["", 'device-filter: ["0x294110DE"], '])
@pytest.mark.parametrize(
    ("counts", "count"), [("3g.95gb: 2", 0), ("1c.3g.95gb: 6", 0), ("7g.189gb: 1", 0), ("3g.95gb: 3", 1)]
)
def test_profiles_with_the_names_of_early_boards_are_known(device: str, counts: str, count: int) -> None:
    found = layout(f"{{devices: all, {device}mig-enabled: true, mig-devices: {{{counts}}}}}")
    assert [each.reason for each in found] == ["ImpossibleMigLayout"] * count


@pytest.mark.parametrize(
    "line",
    [
        '{devices: all, mig-enabled: true, mig-devices: {"1g.5gb": 7}}',
        '{devices: all, mig-enabled: true, mig-devices: {"1c.3g.20gb": 2}}',
        '{devices: [0], mig-enabled: true, mig-devices: {"1g.10gb+me": 1, "1g.10gb": 3}}',
        '{devices: all, device-filter: ["0x20B710DE"], mig-enabled: true, mig-devices: {"1g.6gb": 4}}',
    ],
)
def test_a_layout_that_a_gpu_can_have_is_not(line: str) -> None:
    assert layout(line) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("DCGM_FI_DEV_GPUUTIL, gauge, a\n", "did you mean DCGM_FI_DEV_GPU_UTIL?"),
        ("DCGM_FI_DEV_FB_USED, guage, a\n", "guage of DCGM_FI_DEV_FB_USED is no type of a metric; did you mean gauge?"),
        ("DCGM_FI_DEV_FB_USED, gauge\n", "has 2 fields instead of 3"),
    ],
)
def test_a_wrong_line_of_the_counters_is_named(text: str, words: str) -> None:
    (one,) = exporter_counters({"data": {"metrics.csv": text}}, NOTHING)
    assert words in one.what


def test_right_counters_and_texts_that_merely_name_fields_are_not_reported() -> None:
    right = "# DCGM\nDCGM_FI_DEV_GPU_UTIL, gauge, a\nDCGM_EXP_XID_ERRORS_TOTAL, counter, a\n"
    data = {"metrics.csv": right, "rules.yaml": "expr: DCGM_FI_DEV_NOTHING, 5", "notes": "DCGM_FI_X, and others\n\nyes"}
    data["metrics"] = "DCGM_FI_DEV_GPU_UTIL, utilization of the GPU in percent, see the wiki\n"
    data["fields.csv"] = "metric,unit\nDCGM_FI_DEV_GPU_UTIL,percent\nDCGM_CUSTOM,none\n"
    assert list(exporter_counters({"data": data}, NOTHING)) == []


def scheduler(profile: Obj) -> list[Advice]:
    obj = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    return list(scheduler_files(obj, NOTHING))


def plugin_config(name: str, kind: str = "MostAllocated") -> Obj:
    return {"pluginConfig": [{"name": name, "args": {"scoringStrategy": {"type": kind}}}]}


@pytest.mark.parametrize(
    ("profile", "path", "meant"),
    [
        ({"plugins": {"score": {"enabld": []}}}, "profiles[0].plugins.score.enabld", "enabled"),
        (
            {"plugins": {"score": {"enabled": [{"name": "NodeResourceFit"}]}}},
            "profiles[0].plugins.score.enabled[0].name",
            "NodeResourcesFit",
        ),
        (plugin_config("NodeResourceFit"), "profiles[0].pluginConfig[0].name", "NodeResourcesFit"),
        (
            plugin_config("NodeResourcesFit", "MostAllocatd"),
            "profiles[0].pluginConfig[0].args.scoringStrategy.type",
            "MostAllocated",
        ),
    ],
)
def test_a_misspelled_word_of_the_scheduler_is_found_with_the_one_that_is_meant(
    profile: Obj, path: str, meant: str
) -> None:
    (one,) = scheduler(profile)
    assert (one.reason, one.path) == ("InvalidSchedulerConfig", path)
    assert f"did you mean {meant}?" in one.what


def test_plugins_of_other_projects_are_accepted() -> None:
    for name in ("Coscheduling", "NodeResourcesFitPlus", "NodeResourcesFitABC", "MyNodeResourcesFit", "ImageLocalityX"):
        assert scheduler({"plugins": {"score": {"enabled": [{"name": name}]}}}) == []


def pool(*types: str, schedule: str = "", taints: list[Any] | None = None) -> list[str]:
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}]
    spec = {"template": {"spec": {"requirements": requirements, "taints": taints or []}}}
    budgets = [{"nodes": "1", "schedule": schedule, "duration": "1h"}] if schedule else []
    obj = {"kind": "NodePool", "spec": {**spec, "disruption": {"budgets": budgets}}}
    return [each.what for each in pool_values(obj, NOTHING)]


def test_misspelled_instance_types_are_found_and_unknown_ones_are_accepted() -> None:
    assert pool("p5.48xlrage") == ["p5.48xlrage is no instance type; did you mean p5.48xlarge?"]
    assert pool("a2-highgpu-1gg") == ["a2-highgpu-1gg is no instance type; did you mean a2-highgpu-1g?"]
    assert pool("p5.48xlarge", "m5.large", "g5.metal", "n2-standard-8", "Standard_D4s_v5") == []
    assert pool("a3-edgegpu-8g", "a3-highgpu-7g") == [], "a cloud has types that the tables lack"


@pytest.mark.parametrize(
    ("schedule", "count"), [("0 0 31 2 *", 1), ("0 0 29 2 *", 0), ("@daily", 0), ("every day", 1), ("0 25 * * *", 1)]
)
def test_a_budget_has_a_schedule_that_comes(schedule: str, count: int) -> None:
    assert len(pool("p5.48xlarge", schedule=schedule)) == count


def test_taints_differ_in_key_or_effect() -> None:
    one, other = ({"key": "a", "value": value, "effect": "NoSchedule"} for value in ("1", "2"))
    assert len(pool("p5.48xlarge", taints=[one, other])) == 1
    assert pool("p5.48xlarge", taints=[one, {**other, "effect": "NoExecute"}]) == []
