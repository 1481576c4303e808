"""The commands of a guide, run in the order of the page by one shell that stops at the first failure.

The lines that a page shows below a command are compared with the output of the command. Names that Kubernetes makes,
durations, addresses and shares of use differ from run to run; everything else must be the same.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from build.kubectl import kubectl_binary
from docs.pages import ROOT

GUIDES = sorted((ROOT / "docs" / "how-to").glob("*.md"))
_PATIENCE_S = 300
_START = "shoal up --detach"
_MARK = "output-of-command-"
_VARYING = re.compile(
    r"(?<=-)(?:[bcdfghjklmnpqrstvwxz2456789]{5}|[0-9a-f]{5})\b"  # the end of the name of a pod or Workload
    r"|\b\d+(?:\.\d+){3}(?::\d+)?"  # an address
    r"|\b\d+m?\d*s\b|\d+ %"
    r"|\S+(?=/\.local/state/shoal)"
)


def commands(page: Path) -> list[str]:
    """What a reader types: the lines behind a dollar sign, also those of indented blocks."""
    lines = (line.strip() for line in page.read_text(encoding="utf-8").splitlines())
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def samples(text: str) -> list[tuple[str, list[str]]]:
    """Each command of the console blocks with the output that the page shows for it, without blank lines."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^ *```console\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
        for line in map(str.strip, block.splitlines()):
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            elif line:
                found[-1][1].append(line)
    return found


def marked(text: str) -> list[str]:
    """The commands of a text, each behind a line that marks where its output begins."""
    return [line for at, (command, _) in enumerate(samples(text)) for line in (f"echo {_MARK}{at}", command)]


def differences(text: str, output: str) -> list[str]:
    """The sample lines that the output of their command does not have, in this order."""
    parts = dict(zip(*[iter(re.split(rf"^{_MARK}(\d+)\n", output, flags=re.MULTILINE)[1:])] * 2, strict=True))
    lost = []
    for at, (command, sample) in enumerate(samples(text)):
        lines = iter(parts.get(str(at), "").splitlines())
        shown = (line for line in sample if line != "...")
        lost += [f"{command}: {line}" for line in shown if not any(_is_like(line, it) for it in lines)]
    return lost


def _is_like(sample: str, line: str) -> bool:
    return _VARYING.sub("*", " ".join(sample.split())) == _VARYING.sub("*", " ".join(line.split()))


def run_in_shell(lines: list[str], folder: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    """In an own home, with the programs of a folder before all others. Output of both kinds comes in order."""
    # Several tests run at the same time, so a cluster takes any free port.
    script = "\n".join(line.replace(_START, f"{_START} --port 0 --metrics-port 0 --web-port 0") for line in lines)
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
