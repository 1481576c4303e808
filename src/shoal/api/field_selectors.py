"""Field selectors: `spec.nodeName=n1,status.phase!=Succeeded`.

Unlike labels, only a few fields of each kind may be selected by, all compared as text; a field that an
object does not set compares as empty. The table below is the whole list: to add a field is to add a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.units.errors import UserError, excerpt

_NAME = {"metadata.name": lambda o: o.metadata.name}
_NAMESPACED = {**_NAME, "metadata.namespace": lambda o: o.metadata.namespace}

FIELDS: Mapping[str, Mapping[str, Callable[[Any], str]]] = {
    "Pod": {
        **_NAMESPACED,
        "spec.nodeName": lambda pod: pod.spec.node_name,
        "spec.schedulerName": lambda pod: pod.spec.scheduler_name,
        "spec.restartPolicy": lambda pod: pod.spec.restart_policy,
        "spec.serviceAccountName": lambda pod: pod.spec.service_account_name,
        "spec.hostNetwork": lambda pod: _bool(pod.spec.host_network),
        "status.phase": lambda pod: pod.status.phase,
        "status.podIP": lambda pod: pod.status.pod_ip,
        "status.nominatedNodeName": lambda pod: pod.status.nominated_node_name,
    },
    "Node": {**_NAME, "spec.unschedulable": lambda node: _bool(node.spec.unschedulable)},
    "Namespace": _NAME,
    "PriorityClass": _NAME,
}

_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)
_TERM = re.compile(r"((?:[^\\,=!]|\\.|!(?!=))*)(!=|==|=)((?:[^\\,=]|\\[\\,=])*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    field: str
    equal: bool
    value: str


@dataclass(frozen=True, slots=True)
class FieldSelector:
    kind: str
    requirements: tuple[FieldRequirement, ...]

    def matches(self, value: Any) -> bool:
        """`value` is an object of the kind the selector was read for."""
        fields = FIELDS.get(self.kind, _NAMESPACED)
        return all((fields[r.field](value) == r.value) is r.equal for r in self.requirements)


def parse_field_selector(text: str, kind: str) -> FieldSelector:
    """Read the text form for objects of `kind`; an empty text selects everything."""
    fields = FIELDS.get(kind, _NAMESPACED)
    requirements = []
    for term in _terms(text):
        match = _TERM.fullmatch(term)
        if match is None:
            raise UserError(
                f"field selector {excerpt(text)}: {excerpt(term)} does not compare a field",
                fix="write field=value, field==value or field!=value",
            )
        field, operator, value = match[1].strip(), match[2], _ESCAPED.sub(r"\1", match[3])
        if field not in fields:
            raise UserError(
                f"field selector {excerpt(text)}: field label not supported for {kind}: {field}",
                fix=f"supported are {', '.join(fields)}",
            )
        requirements.append(FieldRequirement(field, operator != "!=", value))
    return FieldSelector(kind, tuple(requirements))


def _terms(text: str) -> list[str]:
    """Split at commas that no backslash protects; empty terms are skipped, as the API server does."""
    return [term for term in re.findall(r"(?:[^\\,]|\\.|\\$)+", text, re.DOTALL) if term]


def _bool(value: bool) -> str:
    return "true" if value else "false"
