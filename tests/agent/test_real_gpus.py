"""The driver contract on the GPUs of this machine. Nothing on a GPU is changed. Skipped where no driver responds."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

from build.exporter_nodes import rows_in
from build.gpu_driver_contract import GpuDriverContract, readings_of
from shoal.agent.exporter.node_state import NodeState
from shoal.agent.exporter.node_watch import NodeWatch, Sources
from shoal.agent.exporter.settings import ExporterSettings
from shoal.agent.features.label_source import LabelSource, MachineFiles, SourceSettings
from shoal.agent.nvml import NvmlDriver
from shoal.agent.nvml_library import nvml_library
from shoal.data.gpus import find_model
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.plugin_flags import FeatureFlags
from shoal.devices.product_names import sanitised
from shoal.units.errors import UserError

_BETWEEN_SAMPLES_S = 0.2
"""Performance counters are compared between samples that are not nearer."""
_PROFILED = ("9.0", "10.0")
"""Compute capabilities of Hopper and Blackwell for servers, whose performance counters drivers read."""


def _open() -> NvmlDriver:
    try:
        return NvmlDriver(nvml_library())
    except UserError as error:
        pytest.skip(f"no GPU: {error}")


@pytest.fixture(name="driver")
def driver_fixture() -> Iterator[NvmlDriver]:
    driver = _open()
    yield driver
    driver.close()


def _nvidia_smi(*fields: str) -> list[list[str]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        pytest.skip("nvidia-smi is not on the path")
    command = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    return [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]


@pytest.mark.gpu
class TestRealGpus(GpuDriverContract):
    """Uses the fixture `driver` above."""


@pytest.mark.gpu
def test_what_nvidia_smi_lists_is_listed(driver: NvmlDriver) -> None:
    fields = ("index", "uuid", "name", "pci.bus_id", "memory.total", "compute_cap", "driver_version")
    version = driver.versions().driver
    expected = [
        [str(gpu.index), gpu.uuid, gpu.name, gpu.pci, str(gpu.memory_mib), gpu.compute_capability, version]
        for gpu in driver.gpus().gpus
    ]
    assert _nvidia_smi(*fields) == expected


@pytest.mark.gpu
def test_readings_are_near_those_of_nvidia_smi(driver: NvmlDriver) -> None:
    gpus = driver.gpus().gpus
    for gpu, row in zip(gpus, _nvidia_smi("temperature.gpu", "power.limit", "memory.reserved"), strict=True):
        readings = readings_of(driver, gpu)
        assert readings.temperature_c == pytest.approx(int(row[0]), abs=5)
        assert readings.power_limit_w == pytest.approx(float(row[1]), abs=1)
        assert readings.reserved_mib == pytest.approx(int(row[2]), abs=2)


@pytest.mark.gpu
def test_the_facts_of_a_known_model_are_those_of_the_gpu(driver: NvmlDriver) -> None:
    for gpu in driver.gpus().gpus:
        model = find_model(gpu.name.replace(" ", "-"))
        if model is None:
            pytest.skip(f"no facts about {gpu.name}")
        assert gpu.compute_capability == model.compute_capability
        assert (gpu.is_mig is not None) == bool(model.mig)
        assert gpu.memory_mib == pytest.approx(model.memory_mib(), rel=0.02)


@pytest.mark.gpu
def test_a_hopper_gpu_reports_what_its_exporter_shows_by_default(driver: NvmlDriver) -> None:
    hopper = [gpu for gpu in driver.gpus().gpus if gpu.compute_capability == "9.0"]
    if not hopper:
        pytest.skip("no Hopper GPU")
    for gpu in hopper:
        # Rows are remapped instead of pages retired; links of a single GPU may be off.
        not_there = {"retired_pages", "nvlink"}
        readings_of(driver, gpu)
        Event().wait(_BETWEEN_SAMPLES_S)
        readings = readings_of(driver, gpu)
        absent = [name for name in readings.__struct_fields__ if getattr(readings, name) is None]
        of_mig = {"util_percent", "memory_util_percent", "encoder_percent", "decoder_percent"}
        assert set(absent) - not_there <= (of_mig if gpu.is_mig else set())


@pytest.mark.gpu
def test_the_exporter_shows_the_figures_of_nvidia_smi(driver: NvmlDriver) -> None:
    settings = ExporterSettings("node-1", interval_s=_BETWEEN_SAMPLES_S)
    state = NodeState(settings, driver.versions().driver, asks_kubelet=False)
    watch = NodeWatch(driver, state, settings, Sources())
    watch.start()
    try:
        watch.wait_for_readings(2, 60)
        rows = rows_in(state.text(monotonic()))
    finally:
        watch.stop()
    smi = _nvidia_smi("index", "uuid", "temperature.gpu", "memory.used", "memory.reserved", "power.draw")
    shown = {name: {labels["gpu"]: value for labels, value in found} for name, found in rows.items()}
    assert [labels["UUID"] for labels, _ in rows["DCGM_FI_DEV_GPU_TEMP"]] == [uuid for _, uuid, *_ in smi]
    for index, _, temperature, used, reserved, power in smi:
        assert shown["shoal_gpu_responding"][index] == 1
        assert shown["DCGM_FI_DEV_GPU_TEMP"][index] == pytest.approx(int(temperature), abs=5)
        assert shown["DCGM_FI_DEV_FB_USED"][index] == pytest.approx(int(used), abs=64)
        assert shown["DCGM_FI_DEV_FB_RESERVED"][index] == pytest.approx(int(reserved), abs=2)
        assert shown["DCGM_FI_DEV_POWER_USAGE"][index] == pytest.approx(float(power), rel=0.3)
    profiled = set(shown.get("DCGM_FI_PROF_SM_ACTIVE", {}))
    for gpu in driver.gpus().gpus:
        assert str(gpu.index) in profiled or gpu.compute_capability not in _PROFILED
        assert str(gpu.index) not in profiled or float(gpu.compute_capability or 0) >= float(_PROFILED[0])


@pytest.mark.gpu
def test_labels_are_those_of_what_nvidia_smi_lists(driver: NvmlDriver) -> None:
    source = LabelSource(
        lambda: driver, SourceSettings(PluginConfig()), MachineFiles(Path(FeatureFlags().machine_type_file))
    )
    labels = source.read().labels
    rows = _nvidia_smi("name", "memory.total", "compute_cap", "driver_version")
    names = [row[0] for row in rows]
    name, memory, capability, version = max(rows, key=lambda row: names.count(row[0]))
    assert labels["nvidia.com/gpu.product"].startswith(sanitised(name))
    assert labels["nvidia.com/gpu.count"] == str(names.count(name))
    assert labels["nvidia.com/gpu.memory"] == memory
    assert f"{labels['nvidia.com/gpu.compute.major']}.{labels['nvidia.com/gpu.compute.minor']}" == capability
    assert labels["nvidia.com/cuda.driver-version.full"] == version
    assert labels["nvidia.com/gpu.present"] == "true"


@pytest.mark.gpu
@pytest.mark.parametrize("framework", ["auto", "cuda"])
def test_the_programs_of_the_examples_measure_this_gpu(driver: NvmlDriver, framework: str) -> None:
    program = Path(__file__).parents[2] / "examples" / "gpu" / "compare.py"
    command = [sys.executable, str(program), "--seconds", "1", "--json", "--framework", framework]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout)
    assert found["gpu"] in {gpu.name for gpu in driver.gpus().gpus} or "MIG" in found["gpu"]
    alone = [row for row in found["rows"] if row["case"].startswith("alone")]
    assert [row["program"] for row in alone] == ["train", "serve"]
    assert all(0 < row["figures"]["p50_ms"] <= row["figures"]["p99_ms"] for row in alone), found
    assert all(row["note"].startswith("not measured: ") for row in found["rows"] if row["figures"] is None)
