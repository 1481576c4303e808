"""APIServices: which server answers for a version of a group."""

from __future__ import annotations

import json

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.spellings import dns_1035_label_faults, subdomain_faults
from shoal.embedded.apiserver.names import path_segment_fault
from shoal.embedded.apiserver.strategy import Strategy

_PORT = 443
_STATUSES = ("True", "False", "Unknown")


class APIServiceStrategy(Strategy):
    has_status = True
    counts_generation = False
    needs_version = True

    def default(self, obj: Obj) -> None:
        service = obj.setdefault("spec", {}).get("service")
        if service is not None:
            service.setdefault("port", _PORT)
        obj.setdefault("status", {})

    def prepare_create(self, obj: Obj) -> None:
        obj["status"] = {}
        if obj["spec"].get("service") is None:
            # What this very server answers is there at once.
            obj["status"] = {"conditions": [{
                "type": "Available",
                "status": "True",
                "lastTransitionTime": obj["metadata"].get("creationTimestamp"),
                "reason": "Local",
                "message": "Local APIServices are always available",
            }]}  # fmt: skip

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec, name = obj["spec"], obj["metadata"].get("name", "")
        group, version = spec.get("group", ""), spec.get("version", "")
        wanted = f"{version}.{group}"
        if name and name != wanted:
            words = f'must be `spec.version+"."+spec.group`: {json.dumps(wanted)}'
            errors.append(bad_value("metadata.name", name, words))
        if group:
            add_faults(errors, "spec.group", group, subdomain_faults(group))
        elif version != "v1":
            errors.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
        add_faults(errors, "spec.version", version, dns_1035_label_faults(version))
        for key, highest in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
            value = spec.get(key, 0)
            if not 0 < value <= highest:
                errors.append(bad_value(f"spec.{key}", value, f"must be positive and less than {highest}"))
        _check_service(spec, errors)
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        return [
            not_supported(f"status.conditions[{place}].status", one.get("status", ""), _STATUSES)
            for place, one in enumerate((new.get("status") or {}).get("conditions") or ())
            if one.get("status") not in _STATUSES
        ]

    def name_fault(self, name: str, is_prefix: bool) -> str:
        return path_segment_fault(name, is_prefix)


def _check_service(spec: Obj, errors: Errors) -> None:
    service, bundle, is_careless = spec.get("service"), spec.get("caBundle"), spec.get("insecureSkipTLSVerify")
    if service is None:
        if bundle:
            size = f"{len(bundle) * 3 // 4} bytes"
            errors.append(bad_value("spec.caBundle", size, "local APIServices may not have a caBundle"))
        if is_careless:
            words = "local APIServices may not have insecureSkipTLSVerify"
            errors.append(bad_value("spec.insecureSkipTLSVerify", True, words))
        return
    errors.extend(required(f"spec.service.{key}") for key in ("namespace", "name") if not service.get(key))
    if not 1 <= service.get("port", _PORT) <= 65535:
        words = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(bad_value("spec.service.port", service["port"], words))
    if is_careless and bundle:
        errors.append(bad_value("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present"))
