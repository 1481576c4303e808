"""The glossary is short: it has only terms that are Shoal's own, each once and with a reason."""

from __future__ import annotations

import re

from docs.pages import ROOT

PAGE = ROOT / "docs" / "glossary.md"
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split(" | ")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| **")
]
TERMS = [row[0].strip("* |") for row in ROWS]
MOST_TERMS = 40


def test_the_glossary_has_at_most_forty_terms_and_each_once() -> None:
    assert 20 < len(TERMS) <= MOST_TERMS
    assert len(set(TERMS)) == len(TERMS)


def test_each_term_has_a_meaning_and_a_reason() -> None:
    assert [row[0] for row in ROWS if len(row) != 3 or not all(row)] == []


def test_each_term_is_used_in_the_source() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "shoal").rglob("*.py")).lower()
    words = {term: term.removeprefix("change ").removeprefix("equivalence ") for term in TERMS}
    assert [term for term, word in words.items() if not re.search(rf"(?<![a-z]){word}", source)] == []
