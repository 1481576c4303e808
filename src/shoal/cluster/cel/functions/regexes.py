"""Regular expressions, as RE2 reads them."""

from __future__ import annotations

import re

from shoal.cluster.cel.faults import CelFault
from shoal.cluster.cel.functions.overload import Table, row
from shoal.cluster.crds.patterns import BadPatternError, compiled, occurs


def _pattern(written: str) -> re.Pattern[str]:
    try:
        return compiled(written)
    except BadPatternError as error:
        raise CelFault(f"error parsing regexp: {error}: `{written}`") from error


def _find(text: str, pattern: str) -> str:
    # Looked for first by what needs no longer than the text is long: most of what may take for ever is not there.
    found = _pattern(pattern).search(text) if _matches(text, pattern) else None
    return found[0] if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    found = [one[0] for one in _pattern(pattern).finditer(text)]
    return found if most < 0 else found[:most]


def _matches(text: str, pattern: str) -> bool:
    try:
        return occurs(pattern, text)
    except BadPatternError as error:
        raise CelFault(f"error parsing regexp: {error}: `{pattern}`") from error


TABLE: Table = (
    row("string!matches(string) bool", _matches),
    row("matches(string, string) bool", _matches),
    row("string!find(string) same", _find),
    row("string!findAll(string) strings", _find_all),
    row("string!findAll(string, int) strings", _find_all),
)
