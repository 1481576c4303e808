"""What a diagnosis consists of: causes with evidence and fix, what was ruled out, and checks that could not run.

Guarantees: a check that lacks its input gives `NotRun`, never `RuledOut`.
"""

from __future__ import annotations

import shlex
from typing import Literal

import msgspec

CauseSeverity = Literal["critical", "error", "warning"]
SubjectKind = Literal["cluster", "node", "pod", "job", "queue", "gpu"]
SUBJECT_KINDS: tuple[SubjectKind, ...] = ("cluster", "node", "pod", "job", "queue", "gpu")


class Patient(msgspec.Struct, frozen=True):
    """The subject of a diagnosis."""

    kind: SubjectKind
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}".strip()


class FoundCause(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    subject: str
    """The object that has the fault: `pod team-a/train-0`."""
    what: str
    fix: str
    evidence: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """The fix, or the next step towards it, as commands."""
    severity: CauseSeverity = "error"
    """Set when a result is composed."""


def shell_command(form: str, *texts: str) -> str:
    """A command to be copied. `form` has `{}` for each text of the objects, which may be no valid names: objects come
    from files too. Each text is one word of the shell; one that would be an option is left out.
    """
    return form.format(*(shlex.quote("NAME" if text.startswith("-") else text) for text in texts))


class RuledOut(msgspec.Struct, frozen=True):
    subject: str
    what: str


class NotRun(msgspec.Struct, frozen=True):
    subject: str
    check: str
    why: str


Verdict = FoundCause | RuledOut | NotRun


class DiagnosisResult(msgspec.Struct, frozen=True, rename="camel"):
    subject: str
    causes: tuple[FoundCause, ...]
    ruled_out: tuple[RuledOut, ...]
    not_run: tuple[NotRun, ...]
