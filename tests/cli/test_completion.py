"""`shoal completion SHELL`: scripts that ask `shoal` itself what may follow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from build.completed import offered
from shoal.cli.completion import Shell
from shoal.cli.completion_variable import VARIABLE
from shoal.cli.kubectl_plugin import complete
from shoal.cli.main import main


@pytest.mark.parametrize("shell", Shell)
def test_there_is_a_script_for_each_shell(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert VARIABLE in script
    assert f"complete_{shell}" in script


def test_another_shell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def completed(*words: str) -> list[str]:
    """What bash is told at the last word."""
    asked = {VARIABLE: "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-m", "shoal"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **asked}, check=True)
    return done.stdout.split()


def test_commands_and_what_is_below_them_are_completed() -> None:
    assert completed("shoal", "wh") == ["why", "what-if"]
    assert completed("shoal", "get", "") == ["pods", "gangs", "queues", "workloads", "nodes"]


def test_options_are_completed() -> None:
    assert {"--filename", "--output", "--kubeconfig"} <= set(completed("shoal", "top", "--"))


def test_forms_of_output_are_completed_each_command_its_own() -> None:
    assert offered("why", "x", "-o", at="") == ["text", "json", "yaml"]
    assert offered("get", "gangs", "-o", at="w") == ["wide"]


def test_kinds_are_completed_and_policies() -> None:
    assert offered("why", at="") == [
        *("pod/", "job/", "workload/", "deployment/", "replicaset/", "statefulset/", "daemonset/", "gang/"),
    ]
    assert offered("why", "pod/x", "--policy", at="FG") == ["FGD"]


def test_without_a_cluster_no_name_is_offered_and_nothing_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    nobody = "--kubeconfig", str(tmp_path / "kubeconfig")
    assert offered("why", *nobody, at="pod/") == []
    assert offered("why", *nobody, at="po") == ["pod/"]
    assert offered("get", "gangs", *nobody, "-n", at="") == []
    assert offered("queue", *nobody, "--name", at="") == []
    assert capfd.readouterr() == ("", "")


def test_contexts_fleets_policies_and_types_are_completed(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("contexts: [{name: prod}, {name: staging}]\n")
    assert offered("get", "pods", "--kubeconfig", str(file), "--context", at="st") == ["staging"]
    assert "8xp5.48xlarge" in offered("up", "--nodes", at="8xp5.4")
    assert "dgx-h100,2xp5.48xlarge" in offered("up", "--nodes", at="dgx-h100,2xp5.4")
    assert offered("pack", "--policy", at="Shoal,FG") == ["Shoal,FGD"]
    assert offered("get", at="ga") == ["gangs"]


def test_kubectl_completes_the_words_behind_its_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    assert complete(["get", "ga"]) == 0
    assert capsys.readouterr().out == "gangs\n:4\n"
    assert complete([]) == 0
    assert capsys.readouterr().out.startswith("why\n")
