"""Semantic versions, as the expressions of device selectors compare them (semver.org, version 2.0.0)."""

from __future__ import annotations

import re
from typing import Any

from shoal.units.numbers import whole_of

_NUMBER = r"(0|[1-9][0-9]*)"
_TAIL = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_STRICT = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-(?P<pre>{_TAIL}))?(?:\+{_TAIL})?")
_LOOSE = re.compile(rf"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(?:-(?P<pre>{_TAIL}))?(?:\+{_TAIL})?")

Version = list[Any]
"""major, minor, patch and the pre-release as text: what an expression can hold. Build metadata compares equal."""


def parse_version(text: str, *, is_loose: bool = False) -> Version:
    """Loosely read, `v1.02` is 1.2.0."""
    match = (_LOOSE if is_loose else _STRICT).fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a semantic version")
    return [int(match[1]), int(match[2] or 0), int(match[3] or 0), match["pre"] or ""]


def is_version(text: str, *, is_loose: bool = False) -> bool:
    return (_LOOSE if is_loose else _STRICT).fullmatch(text) is not None


def compare_versions(one: Version, other: Version) -> int:
    mine, theirs = _order(one), _order(other)
    return (mine > theirs) - (mine < theirs)


def _order(version: Version) -> tuple[Any, ...]:
    major, minor, patch, pre = version
    # A release comes after its pre-releases, numbers before words, and fewer fields before more.
    fields = tuple((1, 0, f) if (n := whole_of(f)) is None else (0, n, "") for f in pre.split(".")) if pre else ()
    return major, minor, patch, not pre, fields
