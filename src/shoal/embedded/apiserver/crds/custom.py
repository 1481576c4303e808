"""Implements custom objects: one `Strategy` per served version, made from the definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.crds.custom_resource_validation import Validator
from shoal.embedded.apiserver.crds.defaults import fill_defaults
from shoal.embedded.apiserver.field_errors import FieldError
from shoal.embedded.apiserver.strategy import Strategy

Obj = dict[str, Any]


class CustomStrategy(Strategy):
    """The behaviour of one version of one definition."""

    def __init__(self, crd: Obj, version: Obj, published: Mapping[str, Any]) -> None:
        self.published = published
        subresources = version.get("subresources") or {}
        self.has_status = subresources.get("status") is not None
        self._scale = subresources.get("scale")
        self._selectable = tuple(one["jsonPath"].removeprefix(".") for one in version.get("selectableFields") or ())
        self._validator = Validator(published)
        self.deprecation = _deprecation(crd, version)
        """What every request to this version is warned with; empty for versions that are not deprecated."""

    def default(self, obj: Obj) -> None:
        fill_defaults(obj, self.published)

    def validate(self, obj: Obj) -> list[FieldError]:
        return [*self._validator.created(obj), *self._scale_faults(obj)]

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        return [*self._validator.updated(new, old), *self._scale_faults(new)]

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:
        return [*self._validator.updated(new, old), *self._status_faults(new)]

    def fields(self, obj: Obj) -> Mapping[str, str]:
        return {path: _as_text(_at(obj, path)) for path in self._selectable}

    def selectable(self) -> tuple[str, ...]:
        return self._selectable

    def generation_changed(self, new: Obj, old: Obj) -> bool:
        """Without the status subresource, status is content as everything else is."""
        apart = {"metadata", "apiVersion", "kind"} | ({"status"} if self.has_status else set())
        return any(new.get(key) != old.get(key) for key in {*new, *old} - apart)

    def _scale_faults(self, obj: Obj) -> list[FieldError]:
        if self._scale is None:
            return []
        from shoal.embedded.apiserver.crds.scale import scale_faults

        return scale_faults(obj, self._scale)

    def _status_faults(self, obj: Obj) -> list[FieldError]:
        if self._scale is None:
            return []
        from shoal.embedded.apiserver.crds.scale import status_faults

        return status_faults(obj, self._scale)


def _deprecation(crd: Obj, version: Obj) -> str:
    if not version.get("deprecated"):
        return ""
    spec = crd["spec"]
    plain = f"{spec['group']}/{version['name']} {spec['names']['kind']} is deprecated"
    return str(version.get("deprecationWarning") or plain)


def _at(obj: Any, path: str) -> Any:
    for step in path.split("."):
        if not isinstance(obj, dict) or step not in obj:
            return None
        obj = obj[step]
    return obj


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
