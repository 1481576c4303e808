"""Checks files: objects, and documents that are a part of one. Adds the place of each finding, and leaves out what
comments and annotations accept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from shoal.api.plain_objects import PlainObject, PlainObjects
from shoal.api.yaml_positions import Positions
from shoal.policy.advice import Obj, RuleContext
from shoal.policy.checks import Refusals, Warned, warnings
from shoal.policy.findings import Accepted, LintFinding, accepted_in, finding_of, ignored_by_annotation, is_accepted
from shoal.policy.fragments import described
from shoal.policy.object_set import key_of, kind_of
from shoal.policy.rules.programs import program_findings
from shoal.policy.wrapped import wrapped
from shoal.units.errors import Where, one_line

_REPLACED = "ReplacedObject"


class Checked(msgspec.Struct):
    findings: list[LintFinding]
    objects: int
    """Checked ones, and documents that are a part of one."""
    accepted: int = 0
    """Findings that comments and annotations accept."""
    skipped: list[tuple[Where, str]] = []
    """Documents that are no object, with what they are."""
    notes: list[str] = []


def lint_files(
    read: PlainObjects, context: RuleContext, chosen: Collection[str], refusals: Refusals | None = None
) -> Checked:
    """`context`: in which objects are looked up; it has those of the files."""
    checked = Checked([], len(read.objects))
    sources, last = _Sources(read.data), {_identity(plain): plain for plain in read.objects}
    for plain in read.objects:
        is_replaced = last[_identity(plain)] is not plain
        prefix = f"{plain.path}." if plain.path else ""
        ignored = ignored_by_annotation(plain.obj)
        for one in warnings([("", plain.obj)], context, chosen, of_files=True, refusals=refusals):
            if one.rule == _REPLACED and not is_replaced:
                # Files beside each other are often alternatives.
                continue
            if one.rule in ignored:
                checked.accepted += 1
            else:
                sources.add(checked, one, plain.where, prefix + one.field)
    for other in read.others:
        part = wrapped(other.value)
        if part is None:
            checked.skipped.append((other.where, one_line(described(other.value))))
            continue
        checked.objects += 1
        for one in warnings([("", part.obj)], context, chosen, of_files=False):
            here = msgspec.structs.replace(one, kind="fragment", namespace="", name="", field=part.field(one.field))
            sources.add(checked, here, other.where, here.field)
    for file in read.programs:
        checked.objects += 1
        name = file.replace("\\", "/").rpartition("/")[2]
        kind = "Script" if name.endswith(".py") else "Dockerfile"
        for each in program_findings(name, read.data[file].decode("utf-8-sig", "replace")):
            if each.reason in chosen:
                warned = Warned("", "", kind, "", name, each.reason, "", each.what, each.fix)
                sources.add_at(checked, warned, Where(file), each.line, each.column)
    checked.notes += sources.notes()
    checked.findings.sort(key=lambda each: (each.file, each.document, each.line, each.column))
    return checked


def _identity(plain: PlainObject) -> tuple[object, ...]:
    """Of the object within its file."""
    return plain.where.file, kind_of(plain.obj), key_of(plain.obj)


def lint_objects(objects: Iterable[Obj], context: RuleContext, chosen: Collection[str]) -> Checked:
    """Those of a cluster."""
    checked = Checked([], 0)
    for obj in objects:
        checked.objects += 1
        ignored = ignored_by_annotation(obj)
        for one in warnings([("", obj)], context, chosen, of_files=False):
            if one.rule in ignored:
                checked.accepted += 1
            else:
                checked.findings.append(finding_of(one, "", 0))
    return checked


class _Sources:
    """Texts and comments of the files with findings, each read once."""

    def __init__(self, data: Mapping[str, bytes]) -> None:
        self._data = data
        self._positions: dict[str, Positions] = {}
        self._accepted: dict[str, list[Accepted]] = {}

    def add(self, checked: Checked, warned: Warned, where: Where, path: str) -> None:
        text = self._positions.get(where.file)
        if text is None:
            text = self._positions[where.file] = Positions(self._text(where.file))
        self.add_at(checked, warned, where, *(text.of(where.document or 1, path) or (0, 0)))

    def add_at(self, checked: Checked, warned: Warned, where: Where, line: int, column: int) -> None:
        if where.file not in self._accepted:
            self._accepted[where.file] = accepted_in(self._text(where.file))
        finding = finding_of(warned, where.file, where.document or 1, line, column)
        if is_accepted(finding, self._accepted[where.file]):
            checked.accepted += 1
        else:
            checked.findings.append(finding)

    def _text(self, file: str) -> str:
        return self._data.get(file, b"").decode("utf-8-sig", "replace")

    def notes(self) -> Iterator[str]:
        """Comments without a reason, and those that name no rule."""
        for file, accepted in self._accepted.items():
            for each in accepted:
                if not each.reason:
                    yield f"{file}:{each.line}: a comment that ignores {each.rule} accepts nothing without a reason"
