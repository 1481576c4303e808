"""Declares rules: all that is known about a fault, beside the function that finds it.

`Rule` is the declaration, and `@check(...)` joins one or several rules with the function that reports them. A module of
`policy/rules/` has nothing else to do to be used: `catalogue.py` reads the checks of all modules there. What `shoal
lint`, the advisor, admission and the documentation say about a rule comes from its declaration.

Rejected: a file of data (YAML, TOML) beside each function. Then two files have to agree, types are not checked, and
reading 120 files takes longer than importing 22 modules that Python has compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

import msgspec

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.kinds import GroupKind

Severity = Literal["error", "warning", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")
"""The worst first."""
Evidence = Literal["manifest", "cluster"]
"""What has to be known: the objects of the files, or objects of a cluster such as its nodes."""
Place = Literal["policy", "webhook", "warning"]
"""Where a rule is checked when an object is created. `policy`: by the API server itself, from an expression; `webhook`:
by Shoal, because other objects or tables are needed; `warning`: the same, and where all rules are enforced, it still
warns only, since the object may be right with objects that are created later."""


class PodCheck(msgspec.Struct, frozen=True):
    """An expression of the API server that must be true. It may read the variables of `admission_rules/pod_cel.py`."""

    expression: str
    message: str
    message_expression: str = ""
    """Replaces the message where it depends on the object."""


class Policy(msgspec.Struct, frozen=True):
    """The check as expressions, for a ValidatingAdmissionPolicy."""

    validations: tuple[PodCheck, ...]
    """Of pods and pod templates."""
    data_check: PodCheck | None = None
    """The check of ConfigMaps and Secrets, from which containers may take variables."""
    is_failure_ignored: bool = False
    """Whether an object is admitted of which an expression cannot be evaluated. Rules that keep GPUs from being taken
    past the scheduler fail closed, the others open: an expression of a huge object may exceed the budget of the API
    server."""


class Change(NamedTuple):
    """One place of the bad example, and what is there in the good one."""

    bad: str
    good: str


class Rule(msgspec.Struct, frozen=True):
    id: str
    """It never changes and is never used again. The hundreds are subjects: 1 objects, 2 placement, 3 pods, 4 queues
    and quotas, 5 sharing of GPUs, 6 monitoring, 7 autoscaling, 8 networks, 9 pipelines, schedulers and programs."""
    reason: str
    """The name: of the rule in commands and comments, and the reason of Events."""
    severity: Severity
    """`error`: it is refused or cannot work; `warning`: it works otherwise than intended; `info`: worth knowing."""
    fault: str
    """What is wrong, in a line."""
    effect: str
    """What follows from it."""
    fix: str
    """What to do in general. Each finding says what to do at its place, with a correction where one is certain."""
    bad: str
    """An example with the fault: objects, a part of one as `shoal lint` reads it, a Dockerfile or a script."""
    changes: tuple[Change, ...]
    """What corrects the example."""
    file: str = "example.yaml"
    """The name that the example has as a file."""
    evidence: Evidence = "manifest"
    links: tuple[str, ...] = ()
    at_admission: Literal["webhook", "warning", ""] = ""
    policy: Policy | None = None
    is_off_by_default: bool = False
    """At admission, only a setting that names the rule switches it on, and no setting of all rules."""

    @property
    def good(self) -> str:
        """The example without the fault."""
        text = self.bad
        for change in self.changes:
            text = text.replace(change.bad, change.good)
        return text

    @property
    def place(self) -> Place | Literal[""]:
        """Where it is checked at admission; empty if it is not."""
        return "policy" if self.policy is not None else self.at_admission


Find = Callable[[Obj, RuleContext], Iterable[Advice]]
"""Checks one object. The object may have any structure: many kinds are hardly validated."""


class Check:
    """A function that finds faults of objects, with the rules that it reports."""

    __slots__ = ("find", "hints", "in_files", "is_rechecked", "kinds", "kinds_at_admission", "reasons", "rules")

    def __init__(
        self,
        find: Find,
        rules: tuple[Rule, ...],
        also: Mapping[str, str],
        kinds: tuple[GroupKind, ...],
        options: CheckOptions,
    ) -> None:
        self.find = find
        self.rules = rules
        """Declared here."""
        self.reasons = {**{rule.reason: rule.fault for rule in rules}, **also}
        """What is wrong, in a line, by the reason of the advice."""
        self.kinds = kinds
        """Whose objects the advisor and `shoal lint` check."""
        self.in_files = options.in_files
        self.kinds_at_admission = kinds if options.kinds_at_admission is None else options.kinds_at_admission
        self.hints = options.hints
        self.is_rechecked = options.is_rechecked

    @property
    def name(self) -> str:
        return self.find.__name__

    @property
    def is_policy(self) -> bool:
        """Whether it is the same check as an expression of the API server; it applies to objects of all kinds."""
        return any(rule.policy is not None for rule in self.rules)

    def __call__(self, obj: Obj, context: RuleContext) -> Iterable[Advice]:
        return self.find(obj, context)


class CheckOptions(msgspec.Struct, frozen=True):
    in_files: bool = False
    """Whether objects of any kind in files are checked, that no server has accepted yet."""
    kinds_at_admission: tuple[GroupKind, ...] | None = None
    """Other kinds than those that the advisor checks, for rules that are marked for admission."""
    hints: tuple[bytes, ...] = ()
    """Objects without any of these words have no such fault. Pods and ConfigMaps without the words of all their checks
    are never decoded: there may be fifty thousand of them."""
    is_rechecked: bool = False
    """Other objects affect the advice, so it is checked at intervals; there are few objects of the kinds."""


_DEFAULTS: Final = CheckOptions()


def check(
    *rules: Rule,
    also: Mapping[str, str] | None = None,
    kinds: tuple[GroupKind, ...] = (),
    options: CheckOptions = _DEFAULTS,
) -> Callable[[Find], Check]:
    """Makes a check of a function. `also`: faults of rules that are declared elsewhere, by their reasons."""

    def made(find: Find) -> Check:
        return Check(find, rules, also or {}, kinds, options)

    return made


class ProgramFinding(NamedTuple):
    reason: str
    line: int
    column: int
    what: str
    fix: str


class ProgramCheck:
    """A function that finds faults in the text of a program, with the rules that it reports."""

    __slots__ = ("find", "reasons", "rules")

    def __init__(
        self, find: Callable[[str], Iterator[ProgramFinding]], rules: tuple[Rule, ...], also: Mapping[str, str]
    ) -> None:
        self.find = find
        self.rules = rules
        self.reasons = {**{rule.reason: rule.fault for rule in rules}, **also}

    def __call__(self, text: str) -> Iterator[ProgramFinding]:
        return self.find(text)


def program_check(
    *rules: Rule, also: Mapping[str, str] | None = None
) -> Callable[[Callable[[str], Iterator[ProgramFinding]]], ProgramCheck]:
    def made(find: Callable[[str], Iterator[ProgramFinding]]) -> ProgramCheck:
        return ProgramCheck(find, rules, also or {})

    return made
