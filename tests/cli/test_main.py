"""The `shoal` command from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.cli.main import main


def test_without_a_command_it_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(command in out for command in ("pack", "demo", "bench"))


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("command", [[], ["pack"], ["demo"], ["bench"], ["bench", "engine"]])
def test_every_command_explains_itself(command: list[str], option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, option]) == 0
    assert "Usage: shoal" in capsys.readouterr().out


def test_the_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("shoal ")


WRONG_USAGE = {
    "an unknown command": (["fly"], "No such command 'fly'; see shoal --help"),
    "an unknown option": (["pack", "--colour"], "No such option: --colour"),
    "a misspelled option": (["why", "x", "--namespce"], "--namespce; did you mean --namespace? see shoal why --help"),
    "a word for a number": (["pack", "--load", "much"], "Invalid value for '--load'"),
    "a negative seed": (["pack", "--seed", "-1"], "Invalid value for '--seed'"),
    "a bench without a name": (["bench"], "Missing command; see shoal bench --help"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG_USAGE.values(), ids=WRONG_USAGE.keys())
def test_wrong_usage_is_one_line_and_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


def test_debug_is_understood_at_the_end_of_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "--policy", "nonsense", "--debug"]) == 2
    assert capsys.readouterr().err.startswith("Traceback")


def test_a_reader_that_went_away_is_no_news() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "shoal", "--version"], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr == b""


def test_help_loads_no_engine() -> None:
    script = "import sys; from shoal.cli.main import main; main(['--help']); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")


def test_a_terminal_without_the_letters_still_shows_the_result() -> None:
    command = [sys.executable, "-m", "shoal", "pack", "--help"]
    done = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}, check=False)
    assert done.returncode == 0


def _shell(line: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = f"{sys.executable} -m shoal {line}"
    return subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, env={**os.environ, **more}, check=False
    )


def test_a_closed_standard_output_or_error_is_no_failure() -> None:
    assert _shell("--version >&-").returncode == 0
    assert _shell("--version 2>&-").returncode == 0
    assert _shell("fly >&- 2>&-").returncode == 2


@pytest.mark.parametrize("columns", ["0", "-3", "x", "99999999999999"])
def test_a_terminal_width_that_is_no_number_is_ignored(columns: str, tmp_path: Path) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1"}}}
    file = tmp_path / "n.json"
    file.write_text(json.dumps(node))
    done = _shell(f"top -f {file}", COLUMNS=columns)
    assert (done.returncode, done.stderr) == (0, "")
    assert "node" in done.stdout.lower()


@pytest.mark.parametrize("arguments", [["decide", "-f", "x" * 5000], ["cluster", "status", "--state", "x" * 5000]])
def test_a_path_that_is_too_long_is_one_short_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert "File name too long" in err
    assert len(err) < 300 or "decide" in arguments


def test_a_folder_with_a_control_character_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "reset", "--state", "/nope\x01/x"]) == 2
    assert "\x01" not in capsys.readouterr().err


@pytest.mark.parametrize("command", [["get", "nodes"], ["why", "a"], ["queue"], ["top"], ["snapshot"], ["run"]])
def test_a_kubeconfig_that_is_nested_too_deeply_is_the_users_to_mend(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config"
    file.write_text("[\n" * 20_000)
    assert main([*command, "--kubeconfig", str(file)]) == 2
    assert capsys.readouterr().err == f"shoal: {file}: is nested too deeply\n"


def test_ctrl_c_while_modules_load_is_one_line_and_its_code() -> None:
    code = (
        "import builtins, sys\n"
        "real = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        "    if name == 'shoal.cli.main': raise KeyboardInterrupt\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = interrupted\n"
        "from shoal.cli.start import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "shoal: interrupted\n")
