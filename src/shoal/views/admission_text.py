"""Prints what the admission rules would refuse, and the list of the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console

from shoal.policy.admission_rules.past import PastPreview
from shoal.policy.admission_rules.preview import Preview
from shoal.policy.admission_rules.rule_list import ListedRule
from shoal.units.errors import one_line
from shoal.views.queue_table import KIND, NAME, WORDS, show_table

_VERBS: Final = {"enforce": "refused", "warn": "warned"}
_PLACES: Final = {"policy": "API server", "webhook": "webhook", "warning": "webhook, warns"}
_NO_HISTORY: Final = "Only objects that exist now are checked; --window 7d reports the pods of a history."
_PAST: Final = (
    "Rules about other objects than nodes and namespaces are not in the history, and labels of namespaces do not count."
)


def show_preview(console: Console, found: Preview, *, is_wide: bool) -> None:
    if found.lines:
        headings = ["result", "namespace", "object", "id", "rule", "message", "field", "fix"]
        leasts = [KIND, NAME, NAME, KIND, NAME, WORDS, NAME, WORDS]
        rows = [
            (
                _VERBS[line.finding.mode],
                line.namespace,
                f"{line.kind} {line.name}",
                line.finding.id,
                line.finding.rule,
                one_line(line.finding.message),
                line.finding.field,
                one_line(line.finding.fix),
            )
            for line in found.lines
        ]
        count = len(headings) if is_wide else len(headings) - 2
        show_table(console, headings[:count], leasts[:count], [row[:count] for row in rows])
    objects = f"{found.objects:,} object{'' if found.objects == 1 else 's'}"
    console.print(f"{found.refused} of {objects} would be refused, and {found.warned} created with warnings.")
    console.print(_NO_HISTORY)


def show_past(console: Console, found: PastPreview) -> None:
    if found.lines:
        headings = ["result", "rule", "namespace", "pods", "workloads", "most of", "id"]
        leasts = [KIND, NAME, NAME, KIND, KIND, NAME, KIND]
        rows = [
            (
                _VERBS[line.mode],
                line.rule,
                line.namespace,
                f"{line.pods:,}",
                f"{line.workloads:,}",
                line.example,
                line.id,
            )
            for line in found.lines
        ]
        show_table(console, headings, leasts, rows)
    pods = f"{found.pods:,} pod{'' if found.pods == 1 else 's'}"
    console.print(f"{found.refused:,} of {pods} would have been refused, and {found.warned:,} created with warnings.")
    console.print(_PAST)


def show_rule_list(console: Console, found: Sequence[ListedRule], *, is_wide: bool) -> None:
    headings = ["id", "rule", "checked by", "on failure", "fault", "effect"]
    leasts = [KIND, NAME, KIND, KIND, WORDS, WORDS]
    count = len(headings) if is_wide else len(headings) - 1
    rows = [(one.id, one.rule, _PLACES[one.place], one.failure_policy, one.fault, one.effect) for one in found]
    show_table(console, headings[:count], leasts[:count], [row[:count] for row in rows])
