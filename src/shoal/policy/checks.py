"""Applies the rules to a set of objects, without a cluster controller: what `shoal lint` reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from shoal.policy.advice import Advice, Correction, Obj, RuleContext
from shoal.policy.advised_kinds import advised_kinds, checks_of, file_checks
from shoal.policy.declarations import Check
from shoal.policy.object_set import is_advised, key_of, kind_of, with_namespace

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


def kinds_of(reason: str) -> list[str]:
    """The kinds of which objects are checked for it; empty for all kinds."""
    if any(reason in each.reasons for each in file_checks()):
        return []
    return list(
        dict.fromkeys(row.kind.name for row in advised_kinds() if any(reason in each.reasons for each in row.checks))
    )


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
        # The file rules compare the object with that of the context, which is as it was written.
        found = [one for each in file_checks() for one in each(written, context)] if of_files else []
        found += [one for each in checks_of(kind_of(obj)) for one in each(obj, context)]
        if refusals is not None:
            found += _unreported(refusals(written), found)
        yield from _warned(source, obj, found, chosen)


def warnings_by(
    checks: Iterable[Check], objects: Iterable[tuple[str, Obj]], context: RuleContext, chosen: Collection[str]
) -> Iterator[Warned]:
    """Those of these checks only, whatever the kinds of the objects."""
    wanted = tuple(checks)
    for source, written in objects:
        if is_advised(written):
            obj = with_namespace(written)
            yield from _warned(source, obj, (one for each in wanted for one in each(obj, context)), chosen)


def _warned(source: str, obj: Obj, found: Iterable[Advice], chosen: Collection[str]) -> Iterator[Warned]:
    namespace, name = key_of(obj)
    for one in found:
        if one.reason in chosen:
            yield Warned(
                source=source,
                api_version=str(obj.get("apiVersion") or ""),
                kind=kind_of(obj).name,
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
