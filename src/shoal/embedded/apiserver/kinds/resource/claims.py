"""ResourceClaims and ResourceClaimTemplates: asked once, then allocated through the status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed
from shoal.embedded.apiserver.kinds.labels import check_annotations, check_labels
from shoal.embedded.apiserver.kinds.resource.allocation import check_claim_status
from shoal.embedded.apiserver.kinds.resource.requests import check_devices, default_devices
from shoal.embedded.apiserver.strategy import Strategy


class ClaimStrategy(Strategy):
    has_status = True
    counts_generation = False
    returns_deleted = True

    initial_status: Mapping[str, Any] = {}

    def default(self, obj: Obj) -> None:
        default_devices(obj.setdefault("spec", {}).setdefault("devices", {}))
        status = obj.setdefault("status", {})
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        for result in results:
            for toleration in result.get("tolerations") or ():
                toleration["operator"] = toleration.get("operator") or "Equal"

    def prepare_status(self, new: Obj, old: Obj) -> None:
        super().prepare_status(new, old)
        _forget_freed(new, old)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        check_devices(obj["spec"]["devices"], "spec.devices", errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors: Errors = []
        add_changed(errors, "spec", new["spec"], old["spec"])
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:
        return check_claim_status(new, old)


def _forget_freed(new: Obj, old: Obj) -> None:
    """What drivers said of devices that the claim no longer has means nothing any more."""
    status = new.get("status") or {}
    freed = _allocated(old) - _allocated(new)
    kept = [one for one in status.get("devices") or () if _id(one) not in freed]
    if len(kept) == len(status.get("devices") or ()):
        return
    new["status"] = {key: value for key, value in status.items() if key != "devices"}
    if kept:
        new["status"]["devices"] = kept


def _allocated(claim: Obj) -> set[tuple[str, str, str]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return {_id(one) for one in (allocation.get("devices") or {}).get("results") or ()}


def _id(device: Obj) -> tuple[str, str, str]:
    return device.get("driver", ""), device.get("pool", ""), device.get("device", "")


class ClaimTemplateStrategy(Strategy):
    counts_generation = False
    returns_deleted = True

    immutable_fields = ("spec",)

    def default(self, obj: Obj) -> None:
        inner = obj.setdefault("spec", {}).setdefault("spec", {})
        default_devices(inner.setdefault("devices", {}))

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        metadata = obj["spec"].get("metadata") or {}
        check_annotations(metadata.get("annotations") or {}, "spec.metadata.annotations", errors)
        check_labels(metadata.get("labels") or {}, "spec.metadata.labels", errors)
        check_devices(obj["spec"]["spec"]["devices"], "spec.spec.devices", errors)
        return errors
