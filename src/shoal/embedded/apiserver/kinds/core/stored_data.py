"""ConfigMaps and Secrets: keys, sizes, and that nothing changes once it is marked immutable."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, required, too_long
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed, add_faults
from shoal.embedded.apiserver.kinds.spellings import config_key_faults
from shoal.embedded.apiserver.strategy import Strategy

_LARGEST = 1024 * 1024
_FIXED = "field is immutable when `immutable` is set"
_REDACTED = "<secret contents redacted>"
_ACCOUNT = "kubernetes.io/service-account.name"
_JSON_KEYS = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}


class ConfigMapStrategy(Strategy):
    counts_generation = False

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        size = 0
        for key, value in data.items():
            add_faults(errors, f"data[{key}]", key, config_key_faults(key))
            if key in binary:
                errors.append(bad_value(f"data[{key}]", key, "duplicate of key present in binaryData"))
            size += len(value.encode())
        for key, value in binary.items():
            add_faults(errors, f"binaryData[{key}]", key, config_key_faults(key))
            size += _decoded_size(value)
        if size > _LARGEST:
            errors.append(too_long("[]", _LARGEST))
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors: Errors = []
        _check_fixed(new, old, ("data", "binaryData"), errors)
        return errors + self.validate(new)


class SecretStrategy(Strategy):
    counts_generation = False

    def default(self, obj: Obj) -> None:
        obj["type"] = obj.get("type") or "Opaque"
        plain = obj.pop("stringData", None)
        if plain:
            data = obj["data"] = dict(obj.get("data") or {})
            for key, value in plain.items():
                data[key] = base64.b64encode(value.encode()).decode()

    def prepare_update(self, new: Obj, old: Obj) -> None:
        super().prepare_update(new, old)
        # Clients from before there were types send none.
        if not new.get("type"):
            new["type"] = old.get("type", "")

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        data = obj.get("data") or {}
        size = 0
        for key, value in data.items():
            add_faults(errors, f"data[{key}]", key, config_key_faults(key))
            size += _decoded_size(value)
        if size > _LARGEST:
            errors.append(too_long("data", _LARGEST))
        _check_type(obj, data, errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors: Errors = []
        add_changed(errors, "type", new.get("type"), old.get("type"))
        _check_fixed(new, old, ("data",), errors)
        return errors + self.validate(new)

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:  # noqa: ARG002 - the signature is the strategy's
        """A pair of certificate and key that has no PEM cannot be used, though it is stored."""
        data = new.get("data") or {}
        if new.get("type") != "kubernetes.io/tls":
            return []
        for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
            if b"-----BEGIN " not in base64.b64decode(data.get(key, "")):
                return [f"tls: failed to find any PEM data in {what} input"]
        return []

    def fields(self, obj: Obj) -> Mapping[str, str]:
        return {"type": obj.get("type") or ""}

    def selectable(self) -> tuple[str, ...]:
        return ("type",)


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def _check_fixed(new: Obj, old: Obj, keys: tuple[str, ...], errors: Errors) -> None:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        errors.append(not_allowed("immutable", _FIXED))
    errors.extend(not_allowed(key, _FIXED) for key in keys if (new.get(key) or {}) != (old.get(key) or {}))


def _check_type(secret: Obj, data: Obj, errors: Errors) -> None:
    kind = secret.get("type", "")
    if key := _JSON_KEYS.get(kind):
        if key not in data:
            errors.append(required(f"data[{key}]"))
        elif fault := _json_fault(data[key]):
            errors.append(bad_value(f"data[{key}]", _REDACTED, fault))
    elif kind == "kubernetes.io/service-account-token":
        if not (secret["metadata"].get("annotations") or {}).get(_ACCOUNT):
            errors.append(required(f"metadata.annotations[{_ACCOUNT}]"))
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            errors.extend((required("data[username]"), required("data[password]")))
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            errors.append(required("data[ssh-privatekey]"))
    elif kind == "kubernetes.io/tls":
        errors.extend(required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data)


def _json_fault(encoded: str) -> str:
    """Why a value is no JSON object, as Go's decoder would say it in the common cases."""
    text = base64.b64decode(encoded)
    if not text.strip():
        return "unexpected end of JSON input"
    try:
        found = json.loads(text)
    except ValueError as fault:
        place = getattr(fault, "pos", 0)
        if place >= len(text.rstrip()):
            return "unexpected end of JSON input"
        return f"invalid character {chr(text[place])!r} looking for beginning of value"
    if isinstance(found, dict) or found is None:
        return ""
    kinds = {str: "string", bool: "bool", list: "array"}
    named = kinds.get(type(found), "number")
    return f"json: cannot unmarshal {named} into Go value of type map[string]interface {{}}"
