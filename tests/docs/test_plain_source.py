"""Docstrings, comments and messages of the packages below name their subjects, as the pages do."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

from docs.pages import ROOT

LATER: set[str] = set()
PACKAGES = (
    "engine/queues",
    *sorted(
        {
            str(folder.relative_to(ROOT / "src" / "shoal"))
            for folder in (*(ROOT / "src" / "shoal").iterdir(), *(ROOT / "src" / "shoal" / "embedded").iterdir())
            if folder.is_dir() and folder.name not in ("__pycache__", "embedded")
        }
        - LATER
    ),
)
BANNED = re.compile(r"\b(?:whoever|whom|nobody|somebody|everybody|anybody|is told|rests|stands)\b", re.IGNORECASE)
_TEXTS = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


def banned_in(source: str) -> list[str]:
    """The lines of strings and comments that use banned words."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    texts = (token.string for token in tokens if token.type in _TEXTS)
    return [line.strip() for text in texts for line in text.splitlines() if BANNED.search(line)]


@pytest.mark.parametrize("package", PACKAGES)
def test_texts_of_a_package_name_their_subjects(package: str) -> None:
    files = sorted((ROOT / "src" / "shoal" / package).rglob("*.py"))
    assert files
    found = {str(file.relative_to(ROOT)): lines for file in files if (lines := _banned_in_file(file))}
    assert found == {}


def test_strings_comments_and_parts_of_formatted_strings_are_read() -> None:
    source = '"""Whoever."""\nnobody = f"{1} for whom"  # it is told\nx = "restsome"\n'
    assert [BANNED.findall(line) for line in banned_in(source)] == [["Whoever"], ["whom"], ["is told"]]


def _banned_in_file(file: Path) -> list[str]:
    return banned_in(file.read_text(encoding="utf-8"))
