"""The commands of a guide, run in the order of the page by one shell that stops at the first failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from build.kubectl import kubectl_binary
from docs.pages import ROOT

GUIDES = sorted((ROOT / "docs" / "how-to").glob("*.md"))
_PATIENCE_S = 300
_START = "shoal up --detach"


def commands(page: Path) -> list[str]:
    """What a reader types: the lines behind a dollar sign, also those of indented blocks."""
    lines = (line.strip() for line in page.read_text(encoding="utf-8").splitlines())
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def run_in_shell(lines: list[str], folder: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    """In an own home, with the programs of a folder before all others. Output of both kinds comes in order."""
    # Several tests run at the same time, so a cluster takes any free port.
    script = "\n".join(line.replace(_START, f"{_START} --port 0 --metrics-port 0") for line in lines)
    environment = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "XDG_STATE_HOME")}
    return subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script],
        cwd=folder,
        env={**environment, "HOME": str(folder / "home"), "PATH": f"{programs}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )


def clone_with_programs(folder: Path) -> Path:
    """A working folder with the examples, and a folder with `shoal` and `kubectl`; the latter is returned."""
    (folder / "home").mkdir()
    (folder / "examples").symlink_to(ROOT / "examples")
    programs = folder / "programs"
    programs.mkdir()
    (programs / "kubectl").symlink_to(kubectl_binary())
    program(programs / "shoal", f'exec "{sys.executable}" -m shoal "$@"')
    return programs


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
