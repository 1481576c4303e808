"""Writes findings for other programs: SARIF for code scanning, workflow commands for GitHub, JUnit for test reports."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import msgspec

from shoal.policy.catalogue import faults, rules
from shoal.policy.findings import LintFinding
from shoal.units.errors import one_line

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {"error": "error", "warning": "warning", "info": "note"}
_COMMANDS: Final = {"error": "error", "warning": "warning", "info": "notice"}


def written(found: Sequence[LintFinding], form: str, version: str) -> str:
    if form == "sarif":
        return msgspec.json.format(msgspec.json.encode(sarif(found, version)), indent=1).decode() + "\n"
    return github(found) if form == "github" else junit(found)


def sarif(found: Sequence[LintFinding], version: str) -> dict[str, Any]:
    used = {each.rule for each in found}
    declared = [
        {
            "id": rule.id,
            "name": rule.reason,
            "shortDescription": {"text": faults()[rule.reason]},
            "fullDescription": {"text": rule.effect},
            "help": {"text": rule.fix},
            **({"helpUri": rule.links[0]} if rule.links else {}),
            "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        }
        for rule in rules().values()
        if rule.reason in used
    ]
    driver = {"name": "shoal lint", "version": version, "rules": declared}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [*map(_result, found)]}],
    }


def _result(finding: LintFinding) -> dict[str, Any]:
    physical: dict[str, Any] = {}
    if finding.file:
        physical["artifactLocation"] = {"uri": _uri(finding.file)}
        physical["region"] = {"startLine": max(finding.line, 1), "startColumn": max(finding.column, 1)}
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": f"{finding.object}: {finding.field}"}],
        **({"physicalLocation": physical} if physical else {}),
    }
    return {
        "ruleId": finding.id,
        "level": _LEVELS[finding.severity],
        "message": {"text": _text(finding)},
        "locations": [location],
        "partialFingerprints": {"objectFieldRule/v1": finding.key},
    }


def _uri(file: str) -> str:
    """Relative to the folder of the check, or of the whole file system."""
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def github(found: Sequence[LintFinding]) -> str:
    """Workflow commands, which GitHub shows beside the lines of a change."""
    lines = []
    for each in found:
        place = {
            "file": each.file,
            "line": each.line or None,
            "col": each.column if each.line else None,
            "title": f"{each.id} {each.rule}",
        }
        parts = ",".join(f"{key}={_property(str(value))}" for key, value in place.items() if value)
        lines.append(f"::{_COMMANDS[each.severity]} {parts}::{_data(_text(each))}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def junit(found: Sequence[LintFinding]) -> str:
    """A suite for each file, a failed case for each finding."""
    suites = []
    for file, group in groupby(sorted(found, key=lambda each: each.file), key=lambda each: each.file):
        cases = list(group)
        head = f'<testsuite name={_attribute(file or "cluster")} tests="{len(cases)}" failures="{len(cases)}">'
        suites.append(head + "".join(map(_case, cases)) + "</testsuite>")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="shoal lint">{"".join(suites)}</testsuites>\n'


def _case(finding: LintFinding) -> str:
    name, place = _attribute(f"{finding.id} {finding.rule}: {finding.field}"), f"{finding.file}:{finding.line}"
    kind = f"type={_attribute(finding.severity)} message={_attribute(_text(finding))}"
    failure = f"<failure {kind}>{escape(one_line(place))}</failure>"
    return f"<testcase classname={_attribute(finding.object)} name={name}>{failure}</testcase>"


def _attribute(text: str) -> str:
    """Without control characters, which XML does not allow."""
    return quoteattr(one_line(text))


def _text(finding: LintFinding) -> str:
    return one_line(f"{finding.field}: {finding.message}; {finding.fix} ({finding.object}: {finding.effect})")
