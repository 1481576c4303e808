"""Kinds that only keep something: pod templates, and the revisions of sets."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import FieldError, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_negative
from shoal.embedded.apiserver.kinds.pods.defaults import default_template
from shoal.embedded.apiserver.kinds.workloads.templates import check_template
from shoal.embedded.apiserver.strategy import Strategy


class PodTemplateStrategy(Strategy):
    returns_deleted = True
    creates_on_update = True
    counts_generation = True

    def default(self, obj: Obj) -> None:
        default_template(obj.setdefault("template", {}))

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        check_template(obj["template"], "template", errors)
        return errors


class ControllerRevisionStrategy(Strategy):
    """A revision is written once."""

    counts_generation = False

    immutable_fields = ("data",)

    def default(self, obj: Obj) -> None:
        obj.setdefault("revision", 0)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        if obj.get("data") is None:
            errors.append(required("data", "data is mandatory"))
        add_negative(errors, "revision", obj.get("revision"))
        return errors
