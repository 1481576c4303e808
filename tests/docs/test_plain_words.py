"""The documentation names its subjects: pages do not use pronouns for programs, users or objects."""

from __future__ import annotations

import re

import pytest

from docs.pages import ROOT

PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
BANNED = re.compile(r"\b(?:whoever|whom|nobody|somebody|everybody|anybody|is told|rests)\b", re.IGNORECASE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_its_subjects(page: object) -> None:
    text = (ROOT / str(page)).read_text(encoding="utf-8")
    # The output of commands and the names of users in examples are quoted as they are.
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    assert [line for line in prose.splitlines() if BANNED.search(line)] == []
