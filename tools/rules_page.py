"""Writes what follows from the declarations of rules: the page docs/rules.md, and the names of their policies, which
roles list in `src/shoal/data/rule_policies.py` and docs/permissions.md.

python -m tools.rules_page
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from shoal.data.named_objects import with_bindings
from shoal.policy.admission_rules.modes import RuleModes
from shoal.policy.admission_rules.policies import validating_policies
from shoal.policy.catalogue import checks, faults, rules
from shoal.policy.declarations import Rule
from shoal.policy.kinds import OPERATED, POD_CREATORS, WITH_PODS, GroupKind

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "rules.md"
NAMES: Final = ROOT / "src" / "shoal" / "data" / "rule_policies.py"
PERMISSIONS: Final = ROOT / "docs" / "permissions.md"
_BEFORE: Final = "`shoal-limit-gpu-parts`, "
"""The last name of a policy in the page of permissions before those of rules."""
_SUBJECTS: Final = {
    "1": "Objects",
    "2": "Placement",
    "3": "Pods",
    "4": "Queues and quotas",
    "5": "Sharing of GPUs",
    "6": "Monitoring",
    "7": "Autoscaling",
    "8": "Networks",
    "9": "Pipelines, schedulers and programs",
}
_GROUPS: Final = (
    (WITH_PODS, "Pods and all kinds with pod templates"),
    (POD_CREATORS, "all kinds with pod templates"),
    (OPERATED, "kinds of other projects with pod templates"),
)
_PLACES: Final = {
    "policy": "checked at admission by the API server, from an expression",
    "webhook": "checked at admission by Shoal",
    "warning": "checked at admission by Shoal, which warns unless the rule itself is set to `enforce`",
}
_HEAD: Final = """\
# Rules

What [`shoal lint`](cli.md#shoal-lint), the [advisor](advice.md) and the [admission rules](admission-rules.md) check.
This page is made of the declarations of the rules: `python -m tools.rules_page`.

- **error**: the object is refused or cannot work; **warning**: it works otherwise than intended; **info**: worth
  knowing.
- *manifest*: the rule needs the objects of the files only. *cluster*: it needs objects of a cluster, such as nodes or
  namespaces; `shoal lint --live` reads them, and in files the rule counts what the files have.
- A comment `# shoal-lint: ignore SHL-305 why` accepts findings of a rule, by its id or its name.
- In the examples, lines with `-` have the fault, and lines with `+` replace them.
"""
_NAMES: Final = '''\
"""Names of the policies that are made of rules. `python -m tools.rules_page` writes this file."""

from __future__ import annotations

RULE_POLICIES = (
{})
'''


def rules_page() -> str:
    found = rules().values()
    lines = [_HEAD]
    for hundred, name in _SUBJECTS.items():
        here = [rule for rule in found if _hundred(rule) == hundred]
        names = ", ".join(f"[{rule.reason}](#{_anchor(rule)})" for rule in here)
        lines.append(f"**{name}:** {names}\n")
    for hundred, those in groupby(found, key=_hundred):
        lines.append(f"## {_SUBJECTS[hundred]}\n")
        for rule in those:
            lines += _section(rule)
    return "\n".join(lines).rstrip("\n") + "\n"


def policy_names() -> tuple[str, ...]:
    return tuple(each.policy["metadata"]["name"] for each in validating_policies(RuleModes()))


def names_module() -> str:
    """The module with the names of the policies."""
    return _NAMES.format("".join(f'    "{name}",\n' for name in policy_names()))


def permissions_page(page: str) -> str:
    """The page of permissions with the names of the policies and bindings of the rules."""
    head, _, rest = page.partition(_BEFORE)
    names = ", ".join(f"`{name}`" for name in with_bindings(policy_names()))
    return f"{head}{_BEFORE}{names}{rest[rest.index(' | ') :]}"


def _hundred(rule: Rule) -> str:
    return rule.id.removeprefix("SHL-")[0]


def _anchor(rule: Rule) -> str:
    return f"{rule.id}-{rule.reason}".lower()


def _section(rule: Rule) -> Iterator[str]:
    yield f"### {rule.id} {rule.reason}\n"
    yield f"**{rule.severity}**, *{rule.evidence}*; {'; '.join(_where(rule))}\n"
    fault = faults().get(rule.reason, rule.fault)
    yield f"{_sentence(fault)} {_sentence(rule.effect)}\n"
    yield f"To do: {rule.fix}.\n"
    if rule.links:
        yield f"See {', '.join(f'<{link}>' for link in rule.links)}.\n"
    title = f" of a file `{rule.file}`" if rule.file != "example.yaml" else ""
    if title:
        yield f"In the example{title}:\n"
    yield "```diff"
    yield from _difference(rule)
    yield "```\n"


def _where(rule: Rule) -> Iterator[str]:
    reporting = [each for each in checks() if rule.reason in each.reasons]
    kinds = tuple(dict.fromkeys(kind for each in reporting for kind in each.kinds))
    if rule.reason in faults():
        yield "found by lint"
    if kinds:
        yield f"advice on {_named(kinds)}"
    if rule.place:
        yield _PLACES[rule.place]
    if rule.is_off_by_default:
        yield "off unless the rule itself is set"


def _named(kinds: tuple[GroupKind, ...]) -> str:
    named, left = [], set(kinds)
    for group, name in _GROUPS:
        if left.issuperset(group):
            named.append(name)
            left -= set(group)
    return ", ".join([*named, *sorted({kind.name for kind in left})])


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _difference(rule: Rule) -> Iterator[str]:
    bad, good = rule.bad.splitlines(), rule.good.splitlines()
    for line in difflib.ndiff(bad, good):
        if not line.startswith("?"):
            yield f"{line[0]} {line[2:]}".rstrip()


def main() -> None:
    PAGE.write_text(rules_page(), encoding="utf-8")
    NAMES.write_text(names_module(), encoding="utf-8")
    PERMISSIONS.write_text(permissions_page(PERMISSIONS.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{len(rules())} rules written to {PAGE}", file=sys.stderr)


if __name__ == "__main__":
    main()
