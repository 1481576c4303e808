"""The changelog is assembled from fragments; whatever cannot be used is named and nothing is changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.changelog import KINDS, ROOT, fragments, main, section


def _with(root: Path, **texts: str) -> Path:
    (root / "changelog.d").mkdir()
    (root / "changelog.d" / "README.md").write_text("How to write one.")
    for name, text in texts.items():
        (root / "changelog.d" / f"{name.replace('__', '.')}.md").write_text(text)
    return root


def test_fragments_go_under_their_kinds_and_are_removed(tmp_path: Path) -> None:
    root = _with(tmp_path, b__fixed="Two\nlines.", a__fixed="First.", queues__added="Queues.")
    assert main(["0.2.0", "2026-11-23"], root) == 0
    assert (root / "CHANGELOG.md").read_text() == (
        "# Changelog\n\n## 0.2.0 (2026-11-23)\n\n### Added\n\n- Queues.\n\n### Fixed\n\n- First.\n- Two lines.\n"
    )
    assert [path.name for path in (root / "changelog.d").iterdir()] == ["README.md"]


def test_a_newer_version_stands_above_an_older_one(tmp_path: Path) -> None:
    root = _with(tmp_path, a__added="Old.")
    assert main(["0.1.0", "2026-11-22"], root) == 0
    (root / "changelog.d" / "b.added.md").write_text("New.")
    assert main(["0.2.0", "2026-11-23"], root) == 0
    text = (root / "CHANGELOG.md").read_text()
    assert text.index("New.") < text.index("Old.")
    assert text.count("# Changelog") == 1


@pytest.mark.parametrize(("name", "text"), [("a__mended", "Text."), ("a__fixed", " \n"), ("A_b__fixed", "Text.")])
def test_a_fragment_that_cannot_be_used_is_named_and_nothing_changes(
    tmp_path: Path, name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = _with(tmp_path, **{name: text})
    assert main(["0.2.0", "2026-11-23"], root) == 1
    assert name.replace("__", ".") in capsys.readouterr().err
    assert not (root / "CHANGELOG.md").exists()


def test_a_version_is_assembled_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = _with(tmp_path, a__added="One.")
    assert main(["0.2.0", "2026-11-23"], root) == 0
    assert main(["0.2.0", "2026-11-23"], root) == 1
    assert "already has a section for 0.2.0" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["0.2", "2026-11-23"], ["0.2.0", "today"]])
def test_a_version_or_date_of_another_form_is_a_user_error(arguments: list[str]) -> None:
    assert main(arguments) == 2


def test_a_draft_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = _with(tmp_path, a__added="One.")
    assert main(["0.2.0", "2026-11-23", "--draft"], root) == 0
    assert "- One." in capsys.readouterr().out
    assert fragments(root / "changelog.d")


def test_the_projects_own_fragments_can_be_assembled() -> None:
    text = section("9.9.9", "2026-11-23", fragments(ROOT / "changelog.d"))
    assert text.startswith("## 9.9.9 (2026-11-23)")
    assert set(KINDS) >= {"security", "added", "changed", "fixed", "removed"}


def test_a_fragment_with_a_list_becomes_several_wrapped_entries(tmp_path: Path) -> None:
    path = tmp_path / "two.fixed.md"
    path.write_text("- First " + "word " * 30 + "end.\n- Second\n  line.\n")
    lines = section("0.2.0", "2026-11-24", [path]).splitlines()
    assert [line for line in lines if line.startswith("- ")][1] == "- Second line."
    assert max(map(len, lines)) <= 120
