"""The selection file of the DCGM exporter is read and refused as the exporter does."""

from __future__ import annotations

import pytest

from shoal.data.dcgm_fields import field_numbers
from shoal.devices.dcgm_fields import DEFAULT, FIELDS, PROFILING, field_of, label_values
from shoal.devices.dcgm_selection import (
    Fault,
    SelectedMetric,
    SelectionError,
    config_map_name,
    selection_of_config_map,
    selection_of_file,
)
from shoal.devices.port import GpuReadings, InstalledGpu

TEMP = "DCGM_FI_DEV_GPU_TEMP, gauge, temperature\n"
ACTIVE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, active\n"
GPU = InstalledGpu(0, "GPU-0", "NVIDIA A100", "00000000:01:00.0", serial="165", vbios="96.00")


def test_each_line_selects_a_field_with_its_type_and_help() -> None:
    found = selection_of_file(f"# clocks\n{TEMP}DCGM_FI_DEV_DEC_UTIL ,  gauge, Decoder\n", ())
    assert found.counters == (
        SelectedMetric("DCGM_FI_DEV_GPU_TEMP", "gauge", "temperature"),
        SelectedMetric("DCGM_FI_DEV_DEC_UTIL", "gauge", "Decoder"),
    )


def test_a_profiling_field_is_skipped_where_the_gpu_does_not_support_it() -> None:
    found = selection_of_file(TEMP + ACTIVE, ())
    assert ([one.field for one in found.counters], found.skipped) == (
        ["DCGM_FI_DEV_GPU_TEMP"],
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE",),
    )
    assert not selection_of_file(ACTIVE, ["DCGM_FI_PROF_GR_ENGINE_ACTIVE"]).skipped


def test_metrics_of_the_exporter_itself_may_have_any_type() -> None:
    found = selection_of_file("DCGM_EXP_XID_ERRORS_COUNT, whatever, Xid errors\n", ())
    assert found.exporter_counters == (SelectedMetric("DCGM_EXP_XID_ERRORS_COUNT", "whatever", "Xid errors"),)


def test_a_former_name_of_a_field_is_accepted_and_has_its_values() -> None:
    found = selection_of_file("dcgm_gpu_temp, gauge, temperature\n", ())
    field = field_of(found.counters[0].field)
    assert field is not None
    assert field.value(GpuReadings(temperature_c=44)) == 44


@pytest.mark.parametrize(
    ("text", "fault", "words"),
    [
        (
            "DCGM_FI_DEV_GPU_TEMP, gauge, hot, extra\n",
            "field-count",
            "malformed CSV record; err: failed to parse line 0 (`[DCGM_FI_DEV_GPU_TEMP gauge hot extra]`), expected 3",
        ),
        (f"{TEMP}DCGM_FI_DEV_GPU_TEMP, gauge\n", "field-count", "record on line 2: wrong number of fields"),
        (
            "DCGM_FI_DEV_NOTHING, gauge, x\n",
            "unknown-field",
            "could not find DCGM field; err: unknown ExporterCounter field 'DCGM_FI_DEV_NOTHING'",
        ),
        (
            "DCGM_FI_DEV_GPU_TEMP, meter, x\n",
            "metric-type",
            "could not find Prometheus metric type 'meter'; one of counter, gauge",
        ),
        ('DCGM_FI_DEV_GPU_TEMP, gauge, "x"\n', "syntax", 'bare " in non-quoted field'),
    ],
)
def test_a_wrong_file_is_refused_in_the_words_of_the_exporter(text: str, fault: Fault, words: str) -> None:
    with pytest.raises(SelectionError) as refused:
        selection_of_file(text, ())
    assert refused.value.fault == fault
    assert words in str(refused.value)


def test_a_skipped_field_is_skipped_before_its_type_is_checked() -> None:
    assert selection_of_file("DCGM_FI_PROF_SM_ACTIVE, meter, x\n", ()).skipped == ("DCGM_FI_PROF_SM_ACTIVE",)


def test_an_empty_file_selects_nothing_and_an_empty_config_map_is_refused() -> None:
    assert selection_of_file("# nothing\n", ()).counters == ()
    for text in ("# nothing\n", f"{TEMP}DCGM_FI_DEV_GPU_TEMP\n"):
        with pytest.raises(SelectionError, match="malformed configmap contents; err: no metrics found") as refused:
            selection_of_config_map(text, ())
        assert refused.value.fault == "no-metrics"
    assert len(selection_of_config_map(TEMP, ()).counters) == 1


def test_a_config_map_is_named_by_namespace_and_name() -> None:
    assert config_map_name("gpu-operator:metrics") == ("gpu-operator", "metrics")
    for text in ("metrics", "a:b:c"):
        with pytest.raises(SelectionError, match="malformed configmap-data"):
            config_map_name(text)


def test_every_field_with_values_is_a_field_of_dcgm_and_is_named_once() -> None:
    names = [field.counter.field for field in FIELDS]
    assert len(set(names)) == len(names)
    assert set(names) <= field_numbers().keys()
    assert {counter.field for counter in DEFAULT.counters} <= field_numbers().keys()


def test_no_field_has_a_value_for_a_gpu_that_reports_nothing() -> None:
    assert [field.counter.field for field in FIELDS if field.value(GpuReadings()) is not None] == []


def test_profiling_fields_are_those_with_numbers_of_profiling() -> None:
    assert PROFILING
    assert all(1000 <= field_numbers()[name] < 1100 for name in PROFILING)


def test_label_fields_become_labels_where_the_gpu_has_a_value() -> None:
    text = "".join(
        f"{name}, label, x\n" for name in ("DCGM_FI_DRIVER_VERSION", "DCGM_FI_DEV_SERIAL", "DCGM_FI_DEV_BRAND")
    )
    found = label_values(selection_of_file(text, ()), GPU, "580.1")
    assert found == {"DCGM_FI_DRIVER_VERSION": "580.1", "DCGM_FI_DEV_SERIAL": "165"}
