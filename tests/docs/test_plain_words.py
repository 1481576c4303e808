"""The documentation and the messages name their subjects: no pronouns for programs, users or objects."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from docs.pages import ROOT

PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
BANNED = re.compile(r"\b(?:whoever|whom|nobody|somebody|everybody|anybody|is told|rests|stands)\b", re.IGNORECASE)
_NO_TERMS = re.compile(
    r"\b(?:promis\w+|yield(?:s|ed)? to|(?:to|never|others) yield(?:ed)?|lets? in|lent out)\b", re.IGNORECASE
)
"""Kubernetes and Kueue have a term for each: nominated, preempted, admitted, borrowed."""
_MAY_BE_BANNED = re.compile("whoever|whom|body|told|rests|stands|promis|yield|let|lent", re.IGNORECASE)
"""Words of the sources that are worth parsing, also where a message is written in several pieces."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_its_subjects(page: object) -> None:
    text = (ROOT / str(page)).read_text(encoding="utf-8")
    # The output of commands and the names of users in examples are quoted as they are.
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    assert [line for line in prose.splitlines() if BANNED.search(line) or _NO_TERMS.search(line)] == []


def _messages(tree: ast.AST) -> Iterator[str]:
    """Text in the code that is not documentation."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    owners = [node for node in ast.walk(tree) if isinstance(node, documented)]
    documentation = {id(line.value) for owner in owners for line in owner.body if isinstance(line, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def test_messages_name_their_subjects() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        if _MAY_BE_BANNED.search(source := path.read_text(encoding="utf-8"))
        for text in _messages(ast.parse(source))
        if " " in text and (BANNED.search(text) or _NO_TERMS.search(text))
    ]
    assert wrong == []
