"""Terms, labels, resources, metrics, variables and errors of GPU clusters, each with a paragraph."""

from __future__ import annotations

from functools import cache
from typing import Literal

from shoal.data.facts import Fact, load, require, require_unique

FILE = "subjects.json"

SubjectKind = Literal["term", "label", "resource", "metric", "variable", "error"]


class Subject(Fact, frozen=True):
    kind: SubjectKind
    names: tuple[str, ...]
    """The usual one first."""
    text: str


def subjects() -> tuple[Subject, ...]:
    return _subjects()


@cache
def _subjects() -> tuple[Subject, ...]:
    found = load(FILE, tuple[Subject, ...])
    for subject in found:
        require(subject.names and subject.text.endswith("."), FILE, str(subject.names), "a name and whole sentences")
    require_unique((name.lower() for subject in found for name in subject.names), FILE, "name")
    return found
