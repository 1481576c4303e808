"""`shoal demo`: plain lines where nobody watches, frames where somebody does, a picture in both cases."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from shoal.cli.demo import watch
from shoal.cli.main import main
from shoal.cli.scenario import synthetic_scenario


def test_in_a_pipe_it_prints_plain_lines_and_leaves_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "demo.svg"
    assert main(["demo", "--nodes", "20", "--out", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.startswith("20 nodes, ")
    assert all(policy in out for policy in ("Shoal", "FGD", "BestFit", "Random"))
    assert out.endswith(f"picture: {picture}\n")
    assert picture.read_text().startswith("<svg")


def test_on_a_terminal_it_draws_frames_and_paces_them() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80, height=24)
    waits: list[float] = []
    result = watch(console, synthetic_scenario(40, 1.3, 42), waits.append)
    assert "H100" in screen.getvalue()
    assert "placements/s" in screen.getvalue()
    assert 100 <= len(waits) <= 200
    assert all(0 <= wait <= 0.05 for wait in waits)
    assert result.policy == "Shoal"
    assert result.reach >= 125


def test_an_impossible_picture_is_refused_before_the_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", "/nowhere/demo.svg"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "shoal: /nowhere/demo.svg: cannot be written: No such file or directory\n"


@pytest.mark.parametrize("nodes", ["0", "4", "100000", "many"])
def test_a_silly_fleet_size_is_refused(nodes: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--nodes", nodes]) == 2
    assert "--nodes" in capsys.readouterr().err
