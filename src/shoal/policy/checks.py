"""Applies the rules to a set of objects, without a cluster controller: what `shoal lint` reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from shoal.policy.advice import Advice, Correction, Obj, Rule, RuleContext
from shoal.policy.kinds import GroupKind
from shoal.policy.object_set import is_advised, key_of, kind_of, with_namespace
from shoal.policy.program_rules import PROGRAM_REASONS
from shoal.policy.rules import FILE_RULES, TABLE

_RULES: Mapping[GroupKind, tuple[Rule, ...]] = {row.kind: row.rules for row in TABLE}
Refusals = Callable[[Obj], Iterable[Advice]]
"""What an API server would refuse about a new object."""


class Warned(msgspec.Struct, frozen=True, rename="camel"):
    """One warning about one object."""

    source: str
    """The file and document; empty for an object of a cluster."""
    api_version: str
    kind: str
    namespace: str
    name: str
    rule: str
    field: str
    message: str
    fix: str
    correction: Correction | None = None

    @property
    def object(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}".rstrip()

    @property
    def reference(self) -> str:
        """As kubectl writes it: `deployment.apps/web`."""
        group = self.api_version.rpartition("/")[0]
        return f"{self.kind.lower()}{f'.{group}' if group else ''}/{self.name}"


def reasons() -> dict[str, str]:
    """Every reason with the faults that it reports, in the order of names."""
    found: dict[str, dict[str, None]] = {}
    for each in _all_rules():
        for reason, fault in each.reasons.items():
            found.setdefault(reason, {})[fault] = None
    for reason, fault in PROGRAM_REASONS.items():
        found.setdefault(reason, {})[fault] = None
    return {reason: "; ".join(found[reason]) for reason in sorted(found)}


def kinds_of(reason: str) -> list[str]:
    """The kinds of which objects are checked for it; empty for all kinds."""
    if any(reason in each.reasons for each in FILE_RULES):
        return []
    return list(dict.fromkeys(row.kind.name for row in TABLE if any(reason in each.reasons for each in row.rules)))


def warnings(
    objects: Iterable[tuple[str, Obj]],
    context: RuleContext,
    chosen: Collection[str],
    *,
    of_files: bool,
    refusals: Refusals | None = None,
) -> Iterator[Warned]:
    """The warnings about each object, with the chosen reasons. `objects`: each with its source."""
    for source, written in objects:
        if not is_advised(written):
            continue
        obj = with_namespace(written)
        kind, (namespace, name) = kind_of(obj), key_of(obj)
        # The file rules compare the object with that of the context, which is as it was written.
        found = [one for each in FILE_RULES for one in each(written, context)] if of_files else []
        found += [one for each in _RULES.get(kind, ()) for one in each(obj, context)]
        if refusals is not None:
            found += _unreported(refusals(written), found)
        for one in found:
            if one.reason in chosen:
                yield Warned(
                    source=source,
                    api_version=str(obj.get("apiVersion") or ""),
                    kind=kind.name,
                    namespace=namespace,
                    name=name,
                    rule=one.reason,
                    field=one.path,
                    message=one.what,
                    fix=one.fix,
                    correction=one.correction,
                )


def _unreported(refused: Iterable[Advice], found: Sequence[Advice]) -> list[Advice]:
    """Those about fields for which the rules have nothing in words of their own."""
    paths = [each.path for each in found]
    return [each for each in refused if not any(_overlap(each.path, path) for path in paths)]


def _overlap(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and long[len(short) : len(short) + 1] in ("", ".", "[")


def _all_rules() -> Iterator[Rule]:
    yield from dict.fromkeys((*(each for row in TABLE for each in row.rules), *FILE_RULES))
