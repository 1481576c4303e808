"""The catalogue of rules: the checks and declarations of all modules in `policy/rules/`.

The modules are those of the package's folder, in the order of their names, so that adding a rule takes one file. They
are imported when the catalogue is first read. Rejected: a list of modules, which is a second file; and one that a tool
writes, which has to be renewed. Listing the folder takes less than a millisecond, importing the modules 100.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from shoal.policy import rules as package
from shoal.policy.declarations import Check, Place, ProgramCheck, Rule

_MODULES: Final = package.__name__


@cache
def _declared() -> tuple[tuple[Check, ...], tuple[ProgramCheck, ...]]:
    checks: dict[Check, None] = {}
    programs: dict[ProgramCheck, None] = {}
    for name in sorted(each.name for each in iter_modules(package.__path__)):
        for value in vars(import_module(f"{_MODULES}.{name}")).values():
            if isinstance(value, Check):
                checks[value] = None
            elif isinstance(value, ProgramCheck):
                programs[value] = None
    return tuple(checks), tuple(programs)


def declared() -> tuple[Check | ProgramCheck, ...]:
    """All that declare or report rules."""
    return (*checks(), *program_checks())


def checks() -> tuple[Check, ...]:
    return _declared()[0]


def program_checks() -> tuple[ProgramCheck, ...]:
    return _declared()[1]


@cache
def rules() -> Mapping[str, Rule]:
    """By reason, in the order of ids."""
    found = [rule for each in declared() for rule in each.rules]
    return {rule.reason: rule for rule in sorted(found, key=lambda rule: rule.id)}


@cache
def faults() -> Mapping[str, str]:
    """What `shoal lint` finds by each reason, in the order of names; without the rules that are for admission only."""
    found: dict[str, dict[str, None]] = {}
    for each in declared():
        if isinstance(each, Check) and not (each.kinds or each.in_files):
            continue
        for reason, fault in each.reasons.items():
            found.setdefault(reason, {})[fault] = None
    return {reason: "; ".join(found[reason]) for reason in sorted(found)}


@cache
def at_admission() -> Mapping[str, Place]:
    """The rules that are checked when an object is created, by reason."""
    return {reason: rule.place for reason, rule in rules().items() if rule.place}


@cache
def policy_checks() -> tuple[Check, ...]:
    """Those that are policies of the API server as well; each has one rule."""
    return tuple(sorted((each for each in checks() if each.is_policy), key=lambda each: each.rules[0].id))


def reason_of(name: str) -> str:
    """The reason that is called so, by itself or by its id; the name itself if there is none."""
    return next((rule.reason for rule in rules().values() if rule.id.lower() == name.lower()), name)
