"""`shoal agent mig` plans, applies, checks and exports layouts, and refuses wrong ones."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from shoal.cli.main import main
from shoal.devices.mig_config import parse_mig_config
from shoal.devices.mig_layouts import MigSpec

SEVEN = "a30-box-4[mig=all-1g.6gb]"
FILE = """
version: v1
mig-configs:
  half: [{devices: [0], mig-enabled: true, mig-devices: {1g.6gb: 2}}]
  wrong: [{devices: all, mig-enabled: true, mig-devices: {4g.24gb: 2}}]
"""


@pytest.fixture
def layouts(tmp_path: Path) -> str:
    path = tmp_path / "layouts.yaml"
    path.write_text(FILE)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *words: str, fake: str = SEVEN) -> tuple[int, str, str]:
    code = main(["agent", "mig", *words, "--fake", fake])
    found = capsys.readouterr()
    return code, found.out, found.err


def test_a_plan_lists_the_steps_and_changes_nothing(layouts: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "plan", "-f", layouts, "-c", "half")
    assert code == 0
    assert out.splitlines() == [
        "GPU 0: destroy 1g.6gb at slice 2",
        "GPU 0: destroy 1g.6gb at slice 3",
        "2 instances stay, 2 are destroyed; mig-parted would destroy 4.",
    ]
    code, out, _ = run(capsys, "plan", "-f", layouts, "-c", "half", "-o", "json")
    assert json.loads(out)["kept"] == 2
    assert run(capsys, "plan", "-c", "all-1g.6gb")[1] == "The layout is applied.\n"


def test_an_applied_layout_is_reported_step_by_step(layouts: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "apply", "-f", layouts, "-c", "half", fake="a30-box-4")
    assert code == 0
    assert out.splitlines()[0] == "GPU 0: enable MIG mode"
    assert out.splitlines()[-1] == "The layout is applied."
    document = json.loads(run(capsys, "apply", "-c", "all-disabled", "-o", "json")[1])
    assert document["resets"] == []
    assert document["done"][-1] == {"step": "mode", "gpu": 3, "enabled": False}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("-c", "all-1g.6gb"), 0),
        (("-c", "all-balanced"), 1),
        (("-c", "all-balanced", "--mode-only"), 0),
        (("-c", "all-disabled", "--mode-only"), 1),
        (("-c", "all-balanced", "--valid-config"), 0),
        (("-c", "none", "--valid-config"), 2),
    ],
)
def test_an_assertion_compares_the_present_layout(
    words: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "assert", *words)[0] == code


def test_an_export_can_be_read_again(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "export", "-l", "mine")
    assert code == 0
    assert parse_mig_config(out) == {"mine": (MigSpec(enabled=True, counts=(("1g.6gb", 4),)),)}
    assert json.loads(run(capsys, "export", "-o", "json")[1])["version"] == "v1"


def test_an_impossible_layout_names_the_nearest(layouts: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "plan", "-f", layouts, "-c", "wrong")
    assert code == 2
    assert "2 x 4g.24gb do not fit on A30-24GB; at most 1 do; the nearest possible layout is 1 x 4g.24gb" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-c", "all-9g"), "selected mig-config not present: all-9g; the layouts of these GPUs are all-disabled"),
        (("-f", "/nowhere.yaml"), "/nowhere.yaml: cannot be read"),
        (("-f", "-"), "unknown version"),
        (("-c", "all-disabled", "-o", "xml"), "--output"),
    ],
)
def test_wrong_input_is_a_user_error(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("version: v9\n"))
    code, _, err = run(capsys, "plan", *words)
    assert code == 2
    assert message in err
