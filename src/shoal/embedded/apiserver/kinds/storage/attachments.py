"""VolumeAttachments: that a volume shall be attached to a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, not_allowed, required, too_long
from shoal.embedded.apiserver.kinds.complaints import MAX_INT32, Errors, Obj, add_faults, add_out_of_range
from shoal.embedded.apiserver.kinds.core.volumes import check_driver_name, check_volume_spec
from shoal.embedded.apiserver.kinds.spellings import subdomain_faults
from shoal.embedded.apiserver.strategy import Strategy

_LARGEST_METADATA = 256 * 1024
_LONGEST_MESSAGE = 1024
_ONE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


class AttachmentStrategy(Strategy):
    has_status = True
    counts_generation = False
    returns_deleted = True
    needs_version = True

    immutable_fields = ("spec",)
    initial_status: Mapping[str, Any] = {"attached": False}

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("source", {})
        obj.setdefault("status", {}).setdefault("attached", False)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        if not spec.get("attacher"):
            errors.append(required("spec.attacher"))
        _check_source(spec.get("source") or {}, "spec.source", errors)
        node = spec.get("nodeName", "")
        add_faults(errors, "spec.nodeName", node, subdomain_faults(node))
        if spec.get("attacher"):
            check_driver_name(spec["attacher"], "spec.attacher", errors)
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        errors: Errors = []
        status = new.get("status") or {}
        held = status.get("attachmentMetadata") or {}
        if sum(len(key) + len(value) for key, value in held.items()) > _LARGEST_METADATA:
            errors.append(too_long("status.attachmentMetadata", _LARGEST_METADATA))
        for key in ("attachError", "detachError"):
            found = status.get(key) or {}
            if len(found.get("message", "").encode()) > _LONGEST_MESSAGE:
                errors.append(too_long(f"status.{key}.message", _LARGEST_METADATA))
            if (code := found.get("errorCode")) is not None:
                add_out_of_range(errors, f"status.{key}.errorCode", code, 0, MAX_INT32)
        return errors


def _check_source(source: Obj, path: str, errors: Errors) -> None:
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if name is None and inline is None:
        errors.append(required(path, _ONE))
    elif name is not None and inline is not None:
        errors.append(not_allowed(path, _ONE))
    elif inline is not None:
        check_volume_spec(inline, f"{path}.inlineVolumeSpec", errors, is_inline=True)
    else:
        if not name:
            errors.append(required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName"))
        name = name or ""
        add_faults(errors, f"{path}.persistentVolumeName", name, subdomain_faults(name))
