"""`shoal agent export` prints or serves the metrics of a machine's GPUs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest
from typer.testing import CliRunner

from build.exporter_nodes import rows_in
from build.pod_resources_server import PodResourcesServer
from build.promtool import PROMTOOL, faults
from shoal.cli.main import app, main
from shoal.devices.dcgm_holders import ContainerHolding

RUN = CliRunner().invoke
ONCE = ("agent", "export", "--once", "--fake")
TEMP = "DCGM_FI_DEV_GPU_TEMP"
HEAVY = ("numpy", "cel_expr_python", "aiohttp", "cryptography", "kubernetes", "shoal.engine", "shoal.client")


def printed(*arguments: str, machine: str = "g6.12xlarge", **environment: str) -> str:
    found = RUN(app, [*ONCE, machine, *arguments], env=environment)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_each_gpu_of_the_simulated_machine_has_rows() -> None:
    rows = rows_in(printed(NODE_NAME="node-1"))
    assert [labels["gpu"] for labels, _ in rows[TEMP]] == ["0", "1", "2", "3"]
    assert {labels["Hostname"] for labels, _ in rows[TEMP]} == {"node-1"}
    assert [value for _, value in rows["shoal_gpu_responding"]] == [1] * 4


def test_performance_counters_are_there_after_the_first_scrape() -> None:
    assert "DCGM_FI_PROF_SM_ACTIVE" in rows_in(printed(machine="dgx-h100"))


@pytest.mark.parametrize(
    ("arguments", "environment", "label"),
    [
        (["--hostname-label", "hostname"], {}, "hostname"),
        (["--use-old-namespace"], {}, "uuid"),
        ([], {"DCGM_EXPORTER_USE_OLD_NAMESPACE": "true"}, "uuid"),
    ],
)
def test_the_names_of_labels_are_options(arguments: list[str], environment: dict[str, str], label: str) -> None:
    assert label in rows_in(printed(*arguments, **environment))[TEMP][0][0]


def test_the_node_can_be_left_out_and_blanks_can_be_dashes() -> None:
    labels = rows_in(printed("--no-hostname", "--replace-blanks-in-model-name"))[TEMP][0][0]
    assert "Hostname" not in labels
    assert labels["modelName"] == "NVIDIA-L4"


def test_a_file_selects_the_metrics(tmp_path: Path) -> None:
    file = tmp_path / "counters.csv"
    file.write_text(f"{TEMP}, gauge, Heat\nDCGM_EXP_XID_ERRORS_COUNT, gauge, Xids\n")
    for text in (printed("--collectors", str(file)), printed(DCGM_EXPORTER_COLLECTORS=str(file))):
        assert {name for name in rows_in(text) if name.startswith("DCGM")} == {TEMP, "DCGM_EXP_XID_ERRORS_COUNT"}
        assert f"# HELP {TEMP} Heat" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("DCGM_FI_DEV_GPU_TEMP, gauge\n", "counters.csv: malformed CSV record; err: failed to parse line 0"),
        ("DCGM_FI_DEV_X, gauge, x\n", "unknown ExporterCounter field 'DCGM_FI_DEV_X'"),
        (b"\xff\xfe", "counters.csv: is not text"),
        (None, "counters.csv: cannot be read: No such file or directory"),
    ],
)
def test_a_wrong_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | bytes | None, words: str
) -> None:
    file = tmp_path / "counters.csv"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main([*ONCE, "dgx-h100", "--collectors", str(file)]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--listen", "9400"], "9400 is no address to listen at"),
        (["--configmap-data", "team"], "malformed configmap-data 'team'"),
        (["--configmap-data", "team:metrics"], "a ConfigMap can be read in a pod only"),
        (["--hostname-label", "host"], "--hostname-label"),
        (["--kubernetes-gpu-id-type", "index"], "--kubernetes-gpu-id-type"),
        (["--collect-interval", "1"], "--collect-interval"),
    ],
)
def test_a_wrong_option_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert main([*ONCE, "dgx-h100", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_variable_of_the_dcgm_exporter_that_changes_nothing_is_named() -> None:
    found = RUN(
        app,
        [*ONCE, "dgx-h100"],
        env={"DCGM_EXPORTER_DEVICES_STR": "g:0", "DCGM_REMOTE_HOSTENGINE_INFO": "localhost:5555"},
    )
    assert found.stderr.splitlines() == [
        "DCGM_EXPORTER_DEVICES_STR is not supported: all GPUs and MIG instances are shown"
    ]


def test_jobs_of_a_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("job-7\njob-8\n")
    rows = rows_in(printed("--hpc-job-mapping-dir", str(tmp_path)))
    assert [(labels["gpu"], labels.get("hpc_job")) for labels, _ in rows[TEMP]] == [
        *(("0", None), ("1", "job-7"), ("1", "job-8"), ("2", None), ("3", None))
    ]


def test_pods_of_the_kubelet_are_named_unless_it_is_not_asked(tmp_path: Path) -> None:
    uuids = [labels["UUID"] for labels, _ in rows_in(printed())[TEMP]]
    kubelet = PodResourcesServer()
    kubelet.holdings = [ContainerHolding("train-0", "team", "main", "nvidia.com/gpu", (uuids[2],))]
    socket = tmp_path / "kubelet.sock"
    with kubelet.served(socket):
        rows = rows_in(printed("--pod-resources", str(socket)))
        none = rows_in(printed("--pod-resources", str(socket), "--no-kubernetes"))
    assert [labels.get("pod") for labels, _ in rows[TEMP]] == [None, None, "train-0", None]
    assert rows["shoal_agent_pod_devices_up"] == [({}, 1)]
    assert [value for _, value in rows["shoal_gpu_allocated_ratio"]] == [0, 0, 1, 0]
    assert not any("pod" in labels for labels, _ in none[TEMP])


def test_the_process_serves_until_it_is_ended_and_loads_no_large_package(tmp_path: Path) -> None:
    socket = tmp_path / "kubelet.sock"
    kubelet = PodResourcesServer()
    script = (
        "import sys\nfrom shoal.cli.main import main\n"
        "code = main(sys.argv[1:])\nprint('loaded', *sorted(sys.modules))\nsys.exit(code)"
    )
    arguments = ["agent", "export", "--fake", "dgx-h100", "--listen", "127.0.0.1:0", "--pod-resources", str(socket)]
    with (
        kubelet.served(socket),
        subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "HOME": str(tmp_path)},
        ) as process,
    ):
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.match(r"metrics at http://127\.0\.0\.1:([0-9]+)/metrics; Ctrl-C ends it\.", line)
        assert found is not None, line
        connection = HTTPConnection("127.0.0.1", int(found[1]), timeout=30)
        connection.request("GET", "/metrics")
        assert "shoal_gpu_responding" in connection.getresponse().read().decode()
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    loaded = set(out.split())
    assert process.returncode == 0
    assert "grpc" in loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.external("promtool")
@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not on the path")
@pytest.mark.parametrize("machine", ["dgx-h100", "dgx-h100[mig=all-1g.10gb]", "g5.12xlarge[time-slicing=4]"])
def test_promtool_complains_about_names_of_the_dcgm_exporter_only(machine: str) -> None:
    """The names of the DCGM exporter do not follow the conventions; nothing else may be wrong."""
    said = faults(printed(machine=machine).encode()).splitlines()
    usual = (
        "label names should be written in 'snake_case' not 'camelCase'",
        'counter metrics should have "_total" suffix',
        "metric name should not include type 'counter'",
    )
    assert said
    assert [line for line in said if not line.startswith("DCGM_") or not line.endswith(usual)] == []
