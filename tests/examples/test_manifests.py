"""Every file of `examples/manifests` is decided, and ends as its header says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shoal.cli.main import main

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "examples" / "manifests").iterdir())

_HEADER = re.compile(r"^#   \$ shoal (.+)\n#   (.+)$", re.MULTILINE)


def test_there_are_examples() -> None:
    assert len(MANIFESTS) >= 5


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: str(path.name))
def test_it_ends_as_its_header_says(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    header = _HEADER.search(path.read_text(encoding="utf-8"))
    assert header is not None, "the header shows the command and the line with which its answer begins"
    assert header[1].split()[-1] == str(path.relative_to(ROOT)), "the command ends in the file that it is about"
    assert main(header[1].split()) == 0
    assert capsys.readouterr().out.splitlines()[0] == header[2]
