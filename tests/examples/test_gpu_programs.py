"""The programs of `examples/gpu` measure one GPU, here one of the test's library, and say why a case is left out."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "gpu"
SOURCE = ROOT / "tests" / "build" / "fake_libcuda.c"
ALONE = [("alone", "train"), ("alone", "serve")]
SHARED = [("time-slicing", "train"), ("time-slicing", "serve")]
compiled = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cuda")
    command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(folder / "libcuda.so.1"), str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return folder


_TORCH = """
__version__ = "2.9"


class Recorded:
    'Each call and attribute of it is recorded and returns it again.'

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        print(name, file=__import__("sys").stderr)
        return self

    def __call__(self, *given, **named):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *fault):
        return None


class cuda:
    is_available = staticmethod(lambda: AVAILABLE)
    get_device_name = staticmethod(lambda number: "A GPU")
    synchronize = staticmethod(lambda: None)


nn = optim = randn = no_grad = Recorded()
"""


class Machine:
    """A search path of the test, with the tools that it has."""

    def __init__(self, folder: Path, library: Path | None = None) -> None:
        self._folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
        self._environment = {**kept, "PATH": str(folder), "LD_LIBRARY_PATH": str(library or folder)}

    def tool(self, name: str, text: str) -> None:
        path = self._folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def torch(self, *, has_gpu: bool) -> str:
        """A module of this name that records what is called; the path for it."""
        (self._folder / "torch.py").write_text(_TORCH.replace("AVAILABLE", str(has_gpu)))
        return str(self._folder)

    def nvidia_smi(self, modes: str, instances: int = 0) -> None:
        listed = "".join(f"  MIG 1g.10gb Device {number}: (UUID: MIG-{number})\\n" for number in range(instances))
        self.tool(
            "nvidia-smi",
            f"""case "$*" in
            *-L*-i*) echo 'these options do not go together'; exit 2 ;;
            *compute-apps*) printf '%s, 512\\n' 1 ;;
            *query-gpu*) echo '{modes}' ;;
            *-L*) printf 'GPU 0: A GPU (UUID: GPU-0)\\n{listed}' ;;
            esac""",
        )

    def run(self, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        chosen = () if "PYTHONPATH" in environment else ("--framework", "cuda")
        command = [sys.executable, str(FOLDER / program), "--seconds", "0.01", *chosen, *arguments]
        return subprocess.run(
            command,
            env={**self._environment, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def document(self, **environment: str) -> dict[str, Any]:
        done = self.run("compare.py", "--json", **environment)
        assert done.returncode == 0, done.stderr + done.stdout
        return dict(json.loads(done.stdout))

    def compare(self, **environment: str) -> tuple[list[tuple[str, str]], dict[str, str]]:
        """The measured rows by case and program, and why others are not."""
        rows = self.document(**environment)["rows"]
        assert all((row["figures"] is None) == bool(row["note"]) for row in rows)
        measured = [(row["case"], row["program"]) for row in rows if row["figures"] is not None]
        return measured, {row["case"]: row["note"] for row in rows if row["note"]}


@pytest.fixture
def machine(tmp_path: Path, library: Path) -> Machine:
    return Machine(tmp_path, library)


def test_the_readme_names_each_file() -> None:
    named = re.findall(r"^\| \[([\w.]+)\]", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(path.name for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("program", ["train.py", "serve.py"])
def test_without_a_driver_the_message_says_what_to_install(tmp_path: Path, program: str) -> None:
    done = Machine(tmp_path).run(program)
    if find_library("cuda") is not None:
        pytest.skip("this machine has the library of the driver")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{program}: libcuda.so.1 was not found: install NVIDIA's driver")


@compiled
@pytest.mark.parametrize(("program", "unit"), [("train.py", "steps/s"), ("serve.py", "requests/s")])
def test_a_program_names_gpu_and_framework_and_prints_its_figures(machine: Machine, program: str, unit: str) -> None:
    done = machine.run(program)
    assert done.returncode == 0, done.stderr
    title, figures = done.stdout.splitlines()
    assert title == "Fake GPU, framework: none (CUDA by ctypes)"
    assert re.fullmatch(rf"[\d.]+ {unit}; p50 [\d.]+ ms, p99 [\d.]+ ms", figures)


def test_an_installed_framework_is_used_and_named(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    done = machine.run("train.py", PYTHONPATH=machine.torch(has_gpu=True))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("A GPU, framework: PyTorch 2.9\n")
    called = done.stderr.split()
    step = ["zero_grad", "cuda", "square", "mean", "backward", "step", "item"]
    assert called[-len(step) :] == step


def test_a_framework_without_a_gpu_says_what_to_check(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    done = machine.run("serve.py", PYTHONPATH=machine.torch(has_gpu=False))
    assert done.returncode == 1
    assert done.stderr.startswith("serve.py: PyTorch finds no GPU: check the driver and CUDA_VISIBLE_DEVICES")


@compiled
@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"FAKE_CUDA_FAILS": "cuInit"}, "no GPU is visible to this process"),
        ({"FAKE_CUDA_FAILS": "cuMemAlloc_v2"}, "cuMemAlloc_v2 failed: CUDA_ERROR_LAUNCH_FAILED (719)"),
        ({"FAKE_CUDA_WRONG": "1"}, "the GPU computed 4.0, not 2.0"),
    ],
)
def test_what_fails_on_the_gpu_is_one_line(machine: Machine, environment: dict[str, str], words: str) -> None:
    done = machine.run("train.py", **environment)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert words in line


@compiled
def test_without_tools_time_slicing_is_measured_and_the_others_are_named(machine: Machine) -> None:
    measured, why_not = machine.compare()
    assert measured == [*ALONE, *SHARED]
    assert why_not == {
        "MPS": "not measured: nvidia-cuda-mps-control is not on the path",
        "MIG": "not measured: nvidia-smi is not on the path",
    }


@compiled
def test_an_exclusive_gpu_is_not_shared_without_mps(machine: Machine) -> None:
    machine.nvidia_smi("Exclusive_Process, Disabled")
    machine.tool("nvidia-cuda-mps-control", "echo 50.0")
    measured, why_not = machine.compare()
    assert measured == [*ALONE, ("MPS", "train"), ("MPS", "serve")]
    assert "the compute mode is Exclusive_Process" in why_not["time-slicing"]
    assert "MIG mode is not enabled" in why_not["MIG"]


@compiled
def test_mps_is_measured_only_if_a_daemon_answers(machine: Machine) -> None:
    machine.nvidia_smi("Default, [N/A]")
    machine.tool("nvidia-cuda-mps-control", "echo Cannot find MPS control daemon process; exit 1")
    measured, why_not = machine.compare(CUDA_MPS_PIPE_DIRECTORY="/a/pipe")
    assert measured == [*ALONE, *SHARED]
    assert "no MPS daemon answers in /a/pipe" in why_not["MPS"]


@compiled
def test_on_a_gpu_in_mig_mode_programs_run_on_instances(machine: Machine) -> None:
    machine.nvidia_smi("Default, Enabled", instances=2)
    measured, why_not = machine.compare()
    place = " on one MIG instance"
    names = [(f"{case}{place}", program) for case, program in (*ALONE, *SHARED)]
    assert measured == [*names, ("MIG", "train"), ("MIG", "serve")]
    assert why_not == {"MPS": "not measured: MIG mode is enabled"}
    # The library of the test names a device as it was chosen; that of the last program is shown.
    assert machine.document()["gpu"] == "MIG-1"


@compiled
def test_instances_of_other_gpus_are_not_used(machine: Machine) -> None:
    machine.nvidia_smi("Default, Enabled", instances=2)
    done = machine.run("compare.py", CUDA_VISIBLE_DEVICES="1")
    assert "alone, train: not measured: MIG mode is enabled and there is no instance" in done.stdout


@compiled
def test_a_tool_that_fails_is_not_called_missing(machine: Machine) -> None:
    machine.tool("nvidia-smi", "echo No devices were found; exit 6")
    _, why_not = machine.compare()
    assert why_not["MIG"] == "not measured: nvidia-smi failed: No devices were found"


@compiled
def test_mig_mode_without_instances_measures_nothing(machine: Machine) -> None:
    machine.nvidia_smi("Default, Enabled")
    done = machine.run("compare.py")
    assert done.returncode == 1
    assert "alone, train: not measured: MIG mode is enabled and there is no instance" in done.stdout


@compiled
def test_the_table_has_a_line_for_each_program_and_the_reasons_below(machine: Machine) -> None:
    machine.nvidia_smi("Default, Disabled")
    title, head, *lines = machine.run("compare.py").stdout.splitlines()
    assert title == "Fake GPU; framework: none (CUDA by ctypes)"
    assert head.split() == ["case", "program", "per", "second", "p50", "ms", "p99", "ms", "memory", "MiB"]
    assert len({len(line) for line in (head, *lines[:4])}) == 1
    assert [line.split()[:2] for line in lines[:4]] == [[*row] for row in (*ALONE, *SHARED)]
    assert [line.partition(",")[0] for line in lines[4:]] == ["MPS", "MIG"]
