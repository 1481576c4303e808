"""Writes the corrections of findings into the text of a file: one name or one value each, everything else stays.

Guarantees: comments and layout are kept. A text that could not be parsed after the change, or in which a corrected
finding would still be, stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shoal.api.yaml_positions import Positions
from shoal.policy.findings import LintFinding

_REFUSED = ("InvalidObject",)
Check = Callable[[str], Sequence[LintFinding] | None]
"""The findings of a text; None if it cannot be read."""


def corrected(text: str, found: Sequence[LintFinding], check: Check) -> tuple[str, list[LintFinding]]:
    """The text, and the findings that are corrected in it. `found`: all findings of the file."""
    done: list[LintFinding] = []
    left = found
    for finding in found:
        changed = _changed(text, finding)
        after = None if changed is None else check(changed)
        # A correction that brings another fault is none.
        if changed is not None and after is not None and _faults(after, finding) < _faults(left, finding):
            text, left = changed, after
            done.append(finding)
    return text, done


def _faults(found: Sequence[LintFinding], corrected: LintFinding) -> int:
    """A server refuses an object for a wrong type before it looks at anything else, so that it may name other faults
    afterwards."""
    return sum(each.rule not in _REFUSED or corrected.rule in _REFUSED for each in found)


def _changed(text: str, finding: LintFinding) -> str | None:
    correction = finding.correction
    if correction is None:
        return None
    of_value = bool(correction.value)
    span = Positions(text).span(finding.document, finding.field, of_value=of_value)
    if span is None:
        return None
    lines = text.splitlines(keepends=True)
    line = lines[span.line]
    if correction.only_of and line[span.start : span.end] != correction.only_of:
        return None
    lines[span.line] = line[: span.start] + (correction.value or correction.key) + line[span.end :]
    return "".join(lines)
