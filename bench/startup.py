"""The CPU time of `shoal` before it does any work: help, the help of a command, a completion, each beside its bar.

python -m bench.startup [--quick]

CPU time and not the time on the clock, which depends on what else the machine does. The least of several runs is taken,
because modules may be compiled in the first.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence

from rich.console import Console

from bench.cluster.figures import Figure, table
from shoal.cli.completion_variable import VARIABLE

_HELP_S, _COMMAND_S, _COMPLETION_S = 0.25, 0.3, 0.15
_COMMANDS = ("why", "get", "up", "run", "pack", "cluster")


def measure(runs: int) -> list[Figure]:
    commands = {name: _least_s(runs, [name, "--help"]) for name in _COMMANDS}
    slowest = max(commands, key=lambda name: commands[name])
    lines = ("shoal wh", "shoal get po", "shoal why --ku")
    completions = {line: _least_s(runs, [], _asking(line)) for line in lines}
    longest = max(completions, key=lambda line: completions[line])
    return [
        Figure("shoal --help", _least_s(runs, ["--help"]), " s", most=_HELP_S),
        Figure("help of a command", commands[slowest], " s", most=_COMMAND_S, beside=f"shoal {slowest} --help"),
        Figure("completion", completions[longest], " s", most=_COMPLETION_S, beside=longest),
    ]


def _asking(line: str) -> dict[str, str]:
    return {VARIABLE: "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}


def _least_s(runs: int, arguments: Sequence[str], more: Mapping[str, str] | None = None) -> float:
    return min(_cpu_s(arguments, more or {}) for _ in range(runs))


def _cpu_s(arguments: Sequence[str], more: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "shoal", *arguments]
    subprocess.run(command, stdout=subprocess.DEVNULL, env={**os.environ, **more}, check=True)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    chosen = parser.parse_args(arguments)
    Console(highlight=False).print(table(measure(3 if chosen.quick else 10)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
