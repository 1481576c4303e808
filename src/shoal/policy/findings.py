"""What the rules found, with the place in the file, and which findings are not reported: those that a comment or a
baseline accepts.

A comment `# shoal-lint: ignore RULE reason` accepts findings of the rule on its own line and on the next one, or in the
whole document if it is before the first field. It needs a reason, so that a reader knows why; without one it accepts
nothing, and a note says so. The annotation `shoal.dev/lint-ignore: "RULE: reason"` does the same for an object of a
cluster; several are separated by semicolons. A baseline is a list of findings that existed when it was written: only
new ones are reported then. It names object, field and rule and no lines, so that other changes of a file do not matter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from shoal.policy.advice import Correction, Obj
from shoal.policy.catalogue import reason_of, rules
from shoal.policy.checks import Warned
from shoal.policy.declarations import SEVERITIES, Severity
from shoal.policy.fields import dig

IGNORE_ANNOTATION = "shoal.dev/lint-ignore"
_MARK = "shoal-lint:"
_VERB = "ignore"


class LintFinding(msgspec.Struct, frozen=True, rename="camel"):
    """A warning with what the catalogue says, and with its place."""

    id: str
    severity: Severity
    effect: str
    file: str
    """Empty for an object of a cluster."""
    document: int
    line: int
    """0 if it is not known, as the column."""
    column: int
    object: str
    reference: str
    """As kubectl writes it: `deployment.apps/web`."""
    rule: str
    field: str
    message: str
    fix: str
    correction: Correction | None = None

    @property
    def key(self) -> str:
        """The same for the same fault of the same object, wherever it is in the file."""
        return f"{self.rule}|{self.object}|{self.field}"


class Accepted(msgspec.Struct, frozen=True):
    """A comment that accepts findings."""

    rule: str
    reason: str
    line: int
    documents: frozenset[int]
    """In which it accepts all of the rule."""


def finding_of(warned: Warned, file: str, document: int, line: int = 0, column: int = 0) -> LintFinding:
    rule = rules()[warned.rule]
    return LintFinding(
        id=rule.id,
        severity=rule.severity,
        effect=rule.effect,
        file=file,
        document=document,
        line=line,
        column=column,
        object=warned.object,
        reference=warned.reference,
        rule=warned.rule,
        field=warned.field,
        message=warned.message,
        fix=warned.fix,
        correction=warned.correction,
    )


def accepted_in(text: str) -> list[Accepted]:
    """The comments of a file that accept findings."""
    if _MARK not in text:
        return []
    found: list[Accepted] = []
    document, is_head, has_content = 1, True, False
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if line == "---" or line.startswith("--- "):
            document += 1 if has_content else 0
            has_content, is_head = True, True
            continue
        if stripped and not stripped.startswith("#"):
            is_head, has_content = False, True
        rule, reason = _comment(line)
        if rule:
            found.append(Accepted(reason_of(rule), reason, number, frozenset({document} if is_head else ())))
    return found


def _comment(line: str) -> tuple[str, str]:
    """The rule that the comment of a line ignores, and why; empty for another comment."""
    before, mark, after = line.partition(_MARK)
    verb, _, rest = after.strip().partition(" ")
    if not mark or verb != _VERB or not before.rstrip().endswith("#"):
        return "", ""
    rule, _, reason = rest.strip().partition(" ")
    return rule, reason.strip()


def is_accepted(finding: LintFinding, accepted: Iterable[Accepted]) -> bool:
    return any(
        each.reason
        and each.rule == finding.rule
        and (finding.document in each.documents or finding.line in {each.line, each.line + 1})
        for each in accepted
    )


def ignored_by_annotation(obj: Obj) -> frozenset[str]:
    """The reasons that the annotation of an object names with a reason why."""
    value = dig(obj, "metadata", "annotations", IGNORE_ANNOTATION)
    pairs = (part.partition(":") for part in value.split(";")) if isinstance(value, str) else ()
    return frozenset(reason_of(name.strip()) for name, _, why in pairs if why.strip())


def new_findings(found: Iterable[LintFinding], baseline: Collection[str]) -> Iterator[LintFinding]:
    return (each for each in found if each.key not in baseline)


def reaches(found: Sequence[LintFinding], level: str) -> bool:
    """Whether one is as severe as the level or more; never for another word."""
    if level not in SEVERITIES:
        return False
    worst = SEVERITIES[: SEVERITIES.index(next(each for each in SEVERITIES if each == level)) + 1]
    return any(each.severity in worst for each in found)
