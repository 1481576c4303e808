"""Reads the rules of prometheus-adapter: which series of a Prometheus server are which metrics of which objects.

A rule finds series by a query, names their metrics, says which labels name objects, and has a template for the query of
a value. What cannot be read is an error that names the rule. Patterns are those of RE2, as with prometheus-adapter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import re2
from msgspec import Struct, field

from shoal.api.decode import convert
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where

NAME = "__name__"
NAMESPACE = "namespaces"
_OPEN, _CLOSE = "<<", ">>"
_MOST_PARTS = 1000
_EXPRESSIONS = (
    ".Series",
    ".LabelMatchers",
    ".GroupBy",
    "index .GroupBySlice 0",
    'index .LabelValuesByName "label"',
)


class SeriesFilter(ApiStruct, frozen=True):
    is_: str = ""
    is_not: str = ""


class GroupResource(ApiStruct, frozen=True):
    group: str = ""
    resource: str = ""


class ResourceLabels(ApiStruct, frozen=True):
    template: str = ""
    overrides: dict[str, GroupResource] = field(default_factory=dict)
    namespaced: bool = True


class MetricName(ApiStruct, frozen=True):
    matches: str = ""
    as_: str = ""


class WrittenRule(ApiStruct, frozen=True):
    series_query: str = ""
    series_filters: tuple[SeriesFilter, ...] = ()
    resources: ResourceLabels = ResourceLabels()
    name: MetricName = MetricName()
    metrics_query: str = ""


class _Rules(ApiStruct, frozen=True):
    rules: tuple[WrittenRule, ...] = ()
    external_rules: tuple[WrittenRule, ...] = ()


class Pattern(Protocol):
    """A compiled pattern of RE2."""

    groups: int

    def search(self, text: str, /) -> Any: ...


class AdapterRule(Struct, frozen=True):
    """A rule that has been checked."""

    written: WrittenRule
    filters: tuple[tuple[Pattern, bool], ...]
    """With whether the name must match."""
    matches: Pattern
    label: Pattern | None
    """Of labels that name an object of the kind in its group `resource`, by the template."""

    def metric(self, series: str) -> str | None:
        """The name of the metric; `None`: the series is none of this rule."""
        if any(bool(pattern.search(series)) != wanted for pattern, wanted in self.filters):
            return None
        found = self.matches.search(series)
        if found is None:
            return None
        form = self.written.name.as_ or ("$1" if self.matches.groups == 1 else "$0")
        return _expanded(form, found)

    def resource(self, label: str) -> str | None:
        """The resource, such as `pods` or `deployments.apps`, whose object a label names."""
        override = self.written.resources.overrides.get(label)
        if override is not None:
            return plural_of(override)
        if self.label is None or (found := self.label.search(label)) is None:
            return None
        parts = found.groupdict()
        return plural_of(GroupResource(parts.get("group") or "", parts["resource"]))

    def label_of(self, resource: str) -> str:
        """The label that names an object of a resource; empty if none does."""
        for label, named in self.written.resources.overrides.items():
            if plural_of(named) == resource:
                return label
        template = self.written.resources.template
        singular, _, group = resource.partition(".")
        text = template.replace("<<.Resource>>", _singular(singular)).replace("<<.Group>>", group.replace(".", "_"))
        return text if template else ""


class AdapterRules(Struct, frozen=True):
    custom: tuple[AdapterRule, ...] = ()
    external: tuple[AdapterRule, ...] = ()


def read_rules(document: object, where: Where) -> AdapterRules:
    """Raises UserError."""
    written = convert(document, _Rules, where)
    return AdapterRules(
        tuple(_checked(one, where.below(f"rules[{at}]")) for at, one in enumerate(written.rules)),
        tuple(_checked(one, where.below(f"externalRules[{at}]")) for at, one in enumerate(written.external_rules)),
    )


def plural_of(named: GroupResource) -> str:
    """`pod` and `pods` are the same; a group follows after a point."""
    name = named.resource.lower()
    plural = name if name.endswith("s") else f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return f"{plural}.{named.group}" if named.group else plural


def _singular(plural: str) -> str:
    return f"{plural[:-3]}y" if plural.endswith("ies") else plural.removesuffix("s")


def _checked(rule: WrittenRule, where: Where) -> AdapterRule:
    if not rule.series_query or not rule.metrics_query:
        field = "metricsQuery" if rule.series_query else "seriesQuery"
        raise UserError("is missing", where=where.below(field))
    filters = []
    for at, one in enumerate(rule.series_filters):
        here = where.below(f"seriesFilters[{at}]")
        filters.append((_pattern(one.is_ or one.is_not, here), bool(one.is_)))
    rendered(rule.metrics_query, Query("s", {}, ()), where.below("metricsQuery"))
    return AdapterRule(
        rule, tuple(filters), _pattern(rule.name.matches or ".*", where.below("name.matches")), _label(rule)
    )


def _pattern(text: str, where: Where) -> Pattern:
    try:
        found: Pattern = re2.compile(text)
    except re2.error as error:
        raise UserError(f'"{text}" is not a pattern: {error}', where=where) from None
    return found


def _label(rule: WrittenRule) -> Pattern | None:
    template = rule.resources.template
    if not template:
        return None
    text = re2.escape(template)
    for name, group in ((".Group", "group"), (".Resource", "resource")):
        text = text.replace(re2.escape(f"{_OPEN}{name}{_CLOSE}"), f"(?P<{group}>[a-zA-Z0-9_-]*)")
    found: Pattern = re2.compile(f"^{text}$")
    return found


def _expanded(form: str, found: Any) -> str:
    """`$1` and `${1}`, as in Go."""
    text, rest = "", form
    while "$" in rest:
        before, _, rest = rest.partition("$")
        text += before
        if rest.startswith("{"):
            name, _, rest = rest[1:].partition("}")
        else:
            size = 0
            while size < len(rest) and rest[size].isdecimal():
                size += 1
            name, rest = rest[:size], rest[size:]
        text += _group(found, name)
    return text + rest


def _group(found: Any, name: str) -> str:
    try:
        return str(found.group(int(name) if name.isdecimal() else name) or "")
    except (IndexError, KeyError, ValueError):
        return ""


# -- queries --------------------------------------------------------------------------------------------------------


class Query(Struct, frozen=True):
    """What a value is asked for."""

    series: str
    labels: Mapping[str, tuple[str, ...]]
    """By label the values that are allowed; none: any."""
    group_by: tuple[str, ...]


def rendered(template: str, query: Query, where: Where) -> str:
    """Raises UserError for an expression that is not known."""
    text, rest = "", template
    for _ in range(_MOST_PARTS):
        before, mark, rest = rest.partition(_OPEN)
        text += before
        if not mark:
            return text
        expression, mark, rest = rest.partition(_CLOSE)
        if not mark:
            raise UserError(f'"{_OPEN}" has no "{_CLOSE}"', where=where)
        text += _value(expression.strip(), query, where)
    raise UserError("has too many expressions", where=where)


def _value(expression: str, query: Query, where: Where) -> str:
    match expression.split():
        case [".Series"]:
            return query.series
        case [".LabelMatchers"]:
            return ",".join(matcher(label, values) for label, values in sorted(query.labels.items()) if values)
        case [".GroupBy"]:
            return ",".join(query.group_by)
        case ["index", ".GroupBySlice", number] if number.isdecimal() and len(number) < 4:
            return query.group_by[int(number)] if int(number) < len(query.group_by) else ""
        case ["index", ".LabelValuesByName", name] if len(name) > 2 and name[0] == name[-1] == '"':
            return "|".join(query.labels.get(name[1:-1], ()))
    known = ", ".join(f"{_OPEN}{one}{_CLOSE}" for one in _EXPRESSIONS)
    raise UserError(f'"{_OPEN}{expression}{_CLOSE}" is not known', where=where, fix=f"use one of {known}")


def matcher(label: str, values: Sequence[str]) -> str:
    if len(values) == 1:
        return f'{label}="{_quoted(values[0])}"'
    return f'{label}=~"{_quoted("|".join(re2.escape(one) for one in values))}"'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
