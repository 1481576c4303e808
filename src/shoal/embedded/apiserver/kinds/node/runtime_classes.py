"""RuntimeClasses."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import FieldError
from shoal.embedded.apiserver.kinds.amounts import check_resources
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.labels import check_labels
from shoal.embedded.apiserver.kinds.pods.placement import check_tolerations
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults
from shoal.embedded.apiserver.strategy import Strategy


class RuntimeClassStrategy(Strategy):
    counts_generation = False
    creates_on_update = True
    needs_version = True

    immutable_fields = ("handler",)

    def default(self, obj: Obj) -> None:
        obj.setdefault("handler", "")

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        add_faults(errors, "handler", obj.get("handler", ""), dns_label_faults(obj.get("handler", "")))
        if (overhead := obj.get("overhead")) is not None:
            check_resources({"limits": overhead.get("podFixed") or {}}, "overhead", None, errors)
        if (scheduling := obj.get("scheduling")) is not None:
            check_labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector", errors)
            check_tolerations(scheduling.get("tolerations") or [], "scheduling.tolerations", errors)
        return errors
