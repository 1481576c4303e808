"""Messages that the page of troubleshooting and the guides quote are messages of the code."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

import pytest

from docs.guides import GUIDES
from docs.pages import ROOT

PAGES = [ROOT / "docs" / "troubleshooting.md", *GUIDES]
_TABLE = re.compile(r"^\| (?:symptom|what you see) \|.*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
_QUOTED = re.compile(r"`([^`]+)`")


@lru_cache(maxsize=1)
def texts() -> str:
    """All text constants of the sources, one a line; the parts of a message that vary are left out."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "shoal").rglob("*.py")]
    nodes = [node for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return "\n".join(node.value for node in nodes if isinstance(node.value, str))


def quoted() -> list[str]:
    tables = [table for page in PAGES for table in _TABLE.findall(page.read_text(encoding="utf-8"))]
    cells = [row.split(" | ")[0] for table in tables for row in table.splitlines()]
    return sorted({text for cell in cells for text in _QUOTED.findall(cell)})


def lost_parts(message: str) -> list[str]:
    """The fixed parts of a message that no text of the sources has."""
    parts = [part.strip(" ,:") for part in re.split(r"\.\.\.|nvidia\.com/\S*", message)]
    return [part for part in parts if part and part not in texts()]


def test_many_messages_are_quoted() -> None:
    assert len(quoted()) > 40


@pytest.mark.parametrize("message", quoted())
def test_a_quoted_message_is_one_of_the_code(message: str) -> None:
    assert lost_parts(message) == []


def test_a_message_that_does_not_exist_would_be_noticed() -> None:
    assert lost_parts("the flux compensator of ... is not there") == ["the flux compensator of"]
