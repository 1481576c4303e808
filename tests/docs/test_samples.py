"""The output that a page shows for a command on files, or for one that reads nothing, is what the command prints."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from docs.guides import differences, marked, samples
from docs.pages import PAGES, ROOT
from shoal.cli.main import main


def _is_on_files(command: str) -> bool:
    words = shlex.split(command)
    if words[:3] == ["shoal", "cost", "calculate"]:
        return True
    return words[0] == "shoal" and "-f" in words and "examples/" in command and "|" not in words


SHOWN = [
    (command, sample)
    for page in PAGES
    for command, sample in samples(page.read_text(encoding="utf-8"))
    if sample and _is_on_files(command)
]


@pytest.mark.parametrize(("command", "sample"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_sample_is_the_output_of_its_command(
    command: str, sample: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    main(shlex.split(command)[1:])
    printed = capsys.readouterr()
    text = "\n".join(["```console", f"$ {command}", *sample, "```"])
    (mark, _) = marked(text)
    assert differences(text, f"{mark.removeprefix('echo ')}\n{printed.err}{printed.out}") == []


def test_the_pages_show_samples_of_many_commands() -> None:
    assert len({Path(command.split()[1]) for command, _ in SHOWN}) >= 6
