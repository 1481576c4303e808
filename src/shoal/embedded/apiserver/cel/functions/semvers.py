"""Semantic versions."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.functions.overload import Table, row
from shoal.embedded.apiserver.cel.values import Opaque
from shoal.units.semver import compare_versions, is_version, parse_version


def _semver(text: str, loose: bool = False) -> Opaque:
    try:
        return Opaque("semver", parse_version(text, is_loose=loose))
    except ValueError as error:
        raise CelFault(f"semver parse error during conversion from string: {error}") from error


def _is_semver(text: str, loose: bool = False) -> bool:
    return is_version(text, is_loose=loose)


def _compare(one: Opaque, other: Opaque) -> int:
    return compare_versions(one.held, other.held)


def _part(place: int) -> Any:
    return lambda one: int(one.held[place])


TABLE: Table = (
    row("semver(string) semver", _semver),
    row("semver(string, bool) semver", _semver),
    row("isSemver(string) bool", _is_semver),
    row("isSemver(string, bool) bool", _is_semver),
    row("semver!compareTo(semver) int", _compare),
    row("semver!isLessThan(semver) bool", lambda one, other: _compare(one, other) < 0),
    row("semver!isGreaterThan(semver) bool", lambda one, other: _compare(one, other) > 0),
    row("semver!major() int", _part(0)),
    row("semver!minor() int", _part(1)),
    row("semver!patch() int", _part(2)),
)
