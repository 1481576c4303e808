"""Measures how a training loop and an inference loop slow each other down on one GPU, and prints a table.

    python examples/gpu/compare.py --seconds 5

Cases: each program alone, both by time-slicing, both under MPS, both on MIG instances. A case that would need another
mode of the GPU or a missing program is listed as not measured, with the reason. No setting of the GPU is changed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_FOLDER = Path(__file__).parent
_USUAL_PIPE = "/tmp/nvidia-mps"
_PATIENCE_S = 120
_MIG_DEVICE = re.compile(r"\(UUID: (MIG-[^)]+)\)")
_GPU_LINE = re.compile(r"GPU ([0-9]+): .* \(UUID: (GPU-[^)]+)\)")
_HEAD = ("case", "program", "per second", "p50 ms", "p99 ms", "memory MiB")
_TEXT_COLUMNS = 2


@dataclass
class Case:
    name: str
    programs: tuple[str, ...]
    environments: tuple[dict[str, str], ...] = ()
    """One for each program."""
    why_not: str = ""
    """Why it is not measured."""


@dataclass
class Figures:
    per_second: float
    p50_ms: float
    p99_ms: float
    memory_mib: int | None
    """None: nvidia-smi does not report it."""


@dataclass
class Row:
    case: str
    program: str
    figures: Figures | None = None
    note: str = ""
    """Why there are no figures."""


@dataclass
class Machine:
    """What nvidia-smi reports of the first visible GPU."""

    problem: str = ""
    """Why nothing is known."""
    compute_mode: str = ""
    mig_mode: str = ""
    instances: list[str] = field(default_factory=list)


class NotMeasuredError(Exception):
    pass


def main() -> int:
    parser = argparse.ArgumentParser(description="Time-slicing, MPS and MIG compared on the first GPU.")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each case runs (5)")
    parser.add_argument("--framework", choices=("auto", "cuda", "torch"), default="auto")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    arguments = ["--seconds", str(options.seconds), "--framework", options.framework]
    rows: list[Row] = []
    framework = gpu = ""
    with TemporaryDirectory(prefix="no-mps-") as no_daemon:
        for case in _cases(_machine(), no_daemon):
            if case.why_not:
                rows.append(Row(case.name, " + ".join(case.programs), note=f"not measured: {case.why_not}"))
                continue
            try:
                reports = _measure(case, arguments)
            except NotMeasuredError as error:
                rows.append(Row(case.name, " + ".join(case.programs), note=f"not measured: {error}"))
                continue
            for report, memory in reports:
                framework, gpu = report["framework"], report["gpu"]
                figures = Figures(report["per_second"], report["p50_ms"], report["p99_ms"], memory)
                rows.append(Row(case.name, report["program"], figures))
    if options.json:
        document = {"gpu": gpu, "framework": framework, "rows": [asdict(row) for row in rows]}
        sys.stdout.write(json.dumps(document) + "\n")
    else:
        sys.stdout.write(_table(gpu, framework, rows))
    return 0 if gpu else 1


def _cases(machine: Machine, no_daemon: str) -> list[Case]:
    """`no_daemon`: an empty folder, in which programs find no MPS daemon."""
    device = {"CUDA_VISIBLE_DEVICES": machine.instances[0]} if machine.instances else {}
    plain = {**device, "CUDA_MPS_PIPE_DIRECTORY": no_daemon}
    place = " on one MIG instance" if machine.instances else ""
    alone, shared = "", ""
    if machine.mig_mode == "Enabled" and not machine.instances:
        alone = shared = "MIG mode is enabled and there is no instance"
    elif machine.compute_mode == "Prohibited":
        alone = shared = "the compute mode is Prohibited"
    elif machine.compute_mode.startswith("Exclusive"):
        shared = f"the compute mode is {machine.compute_mode}, in which two processes need MPS"
    both = ("train", "serve")
    return [
        Case(f"alone{place}", ("train",), (plain,), alone),
        Case(f"alone{place}", ("serve",), (plain,), alone),
        Case(f"time-slicing{place}", both, (plain, plain), shared),
        _mps_case(both, machine),
        _mig_case(both, machine, no_daemon),
    ]


def _mps_case(both: tuple[str, ...], machine: Machine) -> Case:
    pipe = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", _USUAL_PIPE)
    environment = {"CUDA_MPS_PIPE_DIRECTORY": pipe}
    if machine.mig_mode == "Enabled":
        return Case("MPS", both, why_not="MIG mode is enabled")
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None:
        return Case("MPS", both, why_not="nvidia-cuda-mps-control is not on the path")
    asked = subprocess.run(
        [control],
        input="get_default_active_thread_percentage\n",
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=_PATIENCE_S,
        check=False,
    )
    if asked.returncode or not re.search(r"\d", asked.stdout):
        return Case("MPS", both, why_not=f"no MPS daemon answers in {pipe}; start it with {control} -d")
    return Case("MPS", both, (environment, environment))


def _mig_case(both: tuple[str, ...], machine: Machine, no_daemon: str) -> Case:
    if machine.problem:
        return Case("MIG", both, why_not=machine.problem)
    if machine.mig_mode != "Enabled":
        return Case("MIG", both, why_not="MIG mode is not enabled, and a change would affect all users of the GPU")
    if len(machine.instances) < len(both):
        return Case("MIG", both, why_not=f"it needs two MIG instances, and there are {len(machine.instances)}")
    environments = (
        {"CUDA_VISIBLE_DEVICES": one, "CUDA_MPS_PIPE_DIRECTORY": no_daemon} for one in machine.instances[:2]
    )
    return Case("MIG", both, tuple(environments))


def _measure(case: Case, arguments: list[str]) -> list[tuple[dict[str, Any], int | None]]:
    """The report of each program and its memory. All begin together, after their first work."""
    running: list[subprocess.Popen[str]] = []
    try:
        for program, environment in zip(case.programs, case.environments, strict=True):
            command = [sys.executable, str(_FOLDER / f"{program}.py"), "--json", "--wait", *arguments]
            one = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", **environment},
            )
            running.append(one)
            if one.stdout is None or one.stdout.readline() != "ready\n":
                raise NotMeasuredError(_last_line(one.communicate(timeout=_PATIENCE_S)[1]))
        for one in running:
            if one.stdin is not None:
                one.stdin.write("\n")
                one.stdin.flush()
        memory = _memory()
        ended = [one.communicate(timeout=_PATIENCE_S) for one in running]
    finally:
        for one in running:
            if one.poll() is None:
                one.kill()
                one.communicate()
    failed = next((words for one, (_, words) in zip(running, ended, strict=True) if one.returncode), "")
    if failed:
        raise NotMeasuredError(_last_line(failed))
    return [(json.loads(text), memory.get(one.pid)) for one, (text, _) in zip(running, ended, strict=True)]


def _last_line(words: str) -> str:
    return (words.strip().splitlines() or ["the program ended without a message"])[-1]


def _machine() -> Machine:
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0]
    which = chosen if chosen and not chosen.startswith("MIG-") else "0"
    try:
        listed = _nvidia_smi("-L")
        fields = _nvidia_smi("-i", which, "--query-gpu=compute_mode,mig.mode.current", "--format=csv,noheader")
    except NotMeasuredError as error:
        return Machine(str(error))
    mode, _, mig = fields.strip().partition(",")
    return Machine("", mode.strip(), mig.strip(), _instances(listed, which))


def _instances(listed: str, gpu: str) -> list[str]:
    """Of the GPU with this index or UUID, by the list of nvidia-smi."""
    found: list[str] = []
    is_chosen = False
    for line in listed.splitlines():
        head = _GPU_LINE.match(line)
        if head is not None:
            is_chosen = head[1] == gpu or head[2].startswith(gpu)
        elif is_chosen:
            found += _MIG_DEVICE.findall(line)
    return found


def _memory() -> dict[int, int]:
    """By process; empty in a container, in which nvidia-smi does not know the processes."""
    try:
        text = _nvidia_smi("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
    except NotMeasuredError:
        return {}
    pairs = (line.split(",") for line in text.splitlines())
    return {int(pid): int(used) for pid, used in pairs if pid.strip().isdecimal() and used.strip().isdecimal()}


def _nvidia_smi(*arguments: str) -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        raise NotMeasuredError("nvidia-smi is not on the path")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    if done.returncode:
        raise NotMeasuredError(f"nvidia-smi failed: {_last_line(done.stdout + done.stderr)}")
    return done.stdout


def _table(gpu: str, framework: str, rows: list[Row]) -> str:
    notes = [f"{row.case}, {row.program}: {row.note}" for row in rows if row.note]
    if not gpu:
        return "\n".join(notes) + "\n"
    cells = [_HEAD, *(_cells(row, row.figures) for row in rows if row.figures is not None)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    lines = [
        "  ".join(
            text.ljust(width) if column < _TEXT_COLUMNS else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in cells
    ]
    return "\n".join([f"{gpu}; framework: {framework}", *lines, *notes]) + "\n"


def _cells(row: Row, of: Figures) -> tuple[str, ...]:
    memory = "-" if of.memory_mib is None else str(of.memory_mib)
    return (row.case, row.program, f"{of.per_second:.1f}", f"{of.p50_ms:.2f}", f"{of.p99_ms:.2f}", memory)


if __name__ == "__main__":
    sys.exit(main())
