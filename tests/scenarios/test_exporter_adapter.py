"""The judge of the exporter's cases: the expectation is read after the decision, and a wrong one is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .__main__ import results_of
from .exporter.results import results_of_case

OPEN_CASES = Path(__file__).parents[3] / "shared" / "scenarios" / "exporter"
COUNTER = {"field": "DCGM_FI_DEV_GPU_TEMP", "type": "gauge", "help": "x"}
SAMPLE = {"gpu": "0", "gpuUuid": "GPU-a", "device": "nvidia0", "value": "7"}
LABELS = {"gpu": "0", "UUID": "GPU-a", "pci_bus_id": "", "device": "nvidia0", "modelName": ""}


def series(**labels: str) -> dict[str, Any]:
    return {"name": "DCGM_FI_DEV_GPU_TEMP", "labels": {**LABELS, **labels}, "value": "7"}


def status(**fields: Any) -> str:
    (result,) = results_of_case({"id": "a", **fields})
    assert bool(result.diff) == (result.status == "fail")
    return result.status


def test_series_are_compared_in_any_order_and_text_exactly() -> None:
    case: dict[str, Any] = {"stage": "hpc", "counter": COUNTER, "samples": [SAMPLE], "files": {"0": "one\ntwo\n"}}
    both = [series(hpc_job="two"), series(hpc_job="one")]
    assert status(**case, expect={"series": both}) == "pass"
    assert status(**case, expect={"series": both[:1]}) == "fail"
    assert status(**case, expect={"series": [*both, both[0]]}) == "fail"
    assert status(**case, expect={"series": both, "text": ""}) == "fail"


def test_an_expected_refusal_has_to_be_one_and_its_class_is_a_note() -> None:
    wrong: dict[str, Any] = {"stage": "csv", "text": "DCGM_FI_DEV_GPU_TEMP, gauge\n"}
    refused = {"refused": {"class": "other", "mentions": ["fields", "nowhere"]}}
    (result,) = results_of_case({"id": "a", **wrong, "expect": refused})
    assert result.status == "pass"
    assert [note.split(":")[0] for note in result.notes] == [
        "refused as field-count, expected other",
        "the message has no 'nowhere'",
    ]
    assert status(stage="csv", text="", expect=refused) == "fail"
    assert status(**wrong, expect={"counters": []}) == "fail"


@pytest.mark.parametrize("field", ["DCGM_FI_PROF_SM_ACTIVE", 1002])
def test_profiling_fields_may_be_names_or_numbers(field: str | int) -> None:
    line = {"field": "DCGM_FI_PROF_SM_ACTIVE", "type": "gauge", "help": "x"}
    case: dict[str, Any] = {"stage": "csv", "text": "DCGM_FI_PROF_SM_ACTIVE, gauge, x\n"}
    assert status(**case, profilingFields=[field], expect={"counters": [line], "skipped": []}) == "pass"
    assert status(**case, expect={"counters": [], "skipped": ["DCGM_FI_PROF_SM_ACTIVE"]}) == "pass"


@pytest.mark.parametrize("gpu", ["0", 0, "GPU-a"])
def test_mig_devices_may_name_their_gpu_by_number_or_uuid(gpu: str | int) -> None:
    sample = {**SAMPLE, "migProfile": "1g.10gb", "gpuInstanceId": "7"}
    pod = {"name": "a", "namespace": "team", "container": "main", "resource": "nvidia.com/mig-1g.10gb"}
    wanted = series(GPU_I_PROFILE="1g.10gb", GPU_I_ID="7", pod="a", namespace="team", container="main")
    assert (
        status(
            stage="pods",
            counter=COUNTER,
            samples=[sample],
            pods=[{**pod, "deviceIds": ["MIG-b::1"]}],
            migDevices={"MIG-b": {"gpu": gpu, "gpuInstanceId": 7}},
            expect={"series": [wanted]},
        )
        == "pass"
    )


def test_a_group_that_does_not_exist_is_refused() -> None:
    case: dict[str, Any] = {"stage": "render", "counter": COUNTER, "samples": [SAMPLE]}
    assert status(**case, group="vgpu", expect={"refused": {"class": "group"}}) == "pass"
    assert status(**case, group="switch", expect={"refused": {"class": "group"}}) == "fail"


def test_pods_of_virtual_gpus_have_series_of_their_own() -> None:
    pods = [
        {
            "name": name,
            "namespace": "team",
            "container": "main",
            "resource": "nvidia.com/gpu",
            "deviceIds": [f"GPU-a::{number}"],
        }
        for number, name in enumerate("ab")
    ]
    case: dict[str, Any] = {"stage": "pods", "counter": COUNTER, "samples": [SAMPLE], "pods": pods}
    names = {"namespace": "team", "container": "main"}
    both = [series(pod=name, vgpu=str(number), **names) for number, name in enumerate("ab")]
    assert status(**case, options={"virtualGpus": True}, expect={"series": both}) == "pass"
    assert status(**case, expect={"series": [series(pod="b", **names)]}) == "pass"


def test_a_case_without_an_expectation_does_not_pass() -> None:
    assert status(stage="label-name", label="a", expect={}) == "fail"
    assert status(stage="label-name", label="a") == "fail"


@pytest.mark.skipif(not OPEN_CASES.exists(), reason="the open cases are not here")
def test_every_open_case_passes() -> None:
    results = results_of([OPEN_CASES])
    assert {result.family for result in results} == {"exporter"}
    assert [result.id for result in results if result.status != "pass"] == []
