"""Regular expressions, as RE2 reads them."""

from __future__ import annotations

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.functions.overload import Table, row
from shoal.units.linear_patterns import LinearPattern, PatternError, compile_linear


def _pattern(written: str) -> LinearPattern:
    try:
        return compile_linear(written)
    except PatternError as error:
        raise CelFault(str(error)) from error


def _matches(text: str, pattern: str) -> bool:
    return _pattern(pattern).occurs(text)


def _find(text: str, pattern: str) -> str:
    return next(_pattern(pattern).find_all(text), "")


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    return list(_pattern(pattern).find_all(text, most if most >= 0 else None))


TABLE: Table = (
    row("string!matches(string) bool", _matches),
    row("matches(string, string) bool", _matches),
    row("string!find(string) same", _find),
    row("string!findAll(string) strings", _find_all),
    row("string!findAll(string, int) strings", _find_all),
)
