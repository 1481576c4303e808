"""Checks objects that no API server has accepted yet, of any kind."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.api.decode import read
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.object_set import key_of, kind_of
from shoal.policy.rules.schemas import field_faults
from shoal.units.errors import UserError


@check(
    Rule(
        "SHL-101",
        "InvalidObject",
        "error",
        fault="the API server rejects the object",
        effect="an API server refuses it, and what follows in the same file may have been applied already",
        fix="correct the named field; `kubectl explain` has the fields of a kind",
        bad="""\
apiVersion: v1
kind: Node
metadata: {}
""",
        changes=(Change("metadata: {}", "metadata: {name: gpu-1}"),),
    ),
    options=CheckOptions(in_files=True),
)
def invalid_objects(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Finds the first error of an object of a kind that Shoal reads."""
    try:
        read(msgspec.json.encode(obj))
    except UserError as error:
        path = error.where.path or "metadata"
        if path not in field_faults(obj):
            yield Advice("InvalidObject", path, error.what, error.fix or "correct the field")


@check(
    Rule(
        "SHL-102",
        "ReplacedObject",
        "error",
        fault="a later object of the files has the same kind, namespace and name",
        effect="only the last of them exists after the files are applied",
        fix="give each object its own name, or remove one of them",
        bad="""\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {batch: "8"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {batch: "16"}
""",
        changes=(
            Change(
                """settings}
data: {batch: "16"}""",
                """more-settings}
data: {batch: "16"}""",
            ),
        ),
    ),
    options=CheckOptions(in_files=True),
)
def replaced_objects(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """Finds objects that a later one replaces: the set of a context has the last one of each name."""
    namespace, name = key_of(obj)
    last = context.find(kind_of(obj), namespace, name)
    if name and last is not None and last != obj:
        what = "a later object has the same kind, namespace and name, and replaces this one when both are applied"
        yield Advice("ReplacedObject", "metadata.name", what, "give each its own name, or remove one of them")
