"""LimitRanges: bounds and defaults that have to agree with each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, duplicate, not_allowed, required
from shoal.embedded.apiserver.kinds.amounts import check_resource_name, is_extended, is_huge_page, is_native
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.spellings import label_key_faults
from shoal.embedded.apiserver.strategy import Strategy
from shoal.policy.admission.limit_ranges import complete
from shoal.units.quantity import Quantity

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
_SIDES = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


class LimitRangeStrategy(Strategy):
    counts_generation = False
    creates_on_update = True

    def default(self, obj: Obj) -> None:
        complete(obj)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        seen: set[str] = set()
        for place, item in enumerate(obj["spec"].get("limits") or ()):
            path, kind = f"spec.limits[{place}]", item.get("type", "")
            _check_type(kind, f"{path}.type", errors)
            if kind in seen:
                errors.append(duplicate(f"{path}.type", kind))
            seen.add(kind)
            _check_item(item, kind, path, errors)
        return errors


def _check_type(kind: str, path: str, errors: Errors) -> None:
    faults = label_key_faults(kind)
    add_faults(errors, path, kind, faults)
    if not faults and "/" not in kind and kind not in _TYPES:
        errors.append(bad_value(path, kind, "must be a standard limit type or fully qualified"))


def _check_item(item: Obj, kind: str, path: str, errors: Errors) -> None:
    names: set[str] = set()
    for side in _SIDES:
        amounts = item.get(side) or {}
        if kind == "Pod" and side in ("default", "defaultRequest"):
            if amounts:
                errors.append(not_allowed(f"{path}.{side}", "may not be specified when `type` is 'Pod'"))
            continue
        if side == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim":
            _check_storage(item, path, errors)
        for name in amounts:
            _check_name(kind, name, f"{path}.{side}[{name}]", errors)
            names.add(name)
    if kind == "Pod":
        item = {key: value for key, value in item.items() if key not in ("default", "defaultRequest")}
    for name in sorted(names):
        _Bounds.of(item, name).check(name, path, errors)


def _check_storage(item: Obj, path: str, errors: Errors) -> None:
    if "storage" not in (item.get("min") or {}) and "storage" not in (item.get("max") or {}):
        words = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", words))


def _check_name(kind: str, name: str, path: str, errors: Errors) -> None:
    if not check_resource_name(name, path, errors) or kind not in ("Pod", "Container"):
        return
    if "/" not in name:
        if name not in _OF_CONTAINERS and not is_huge_page(name):
            errors.append(bad_value(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(bad_value(path, name, "doesn't follow extended resource name standard"))


class _Bounds(NamedTuple):
    """All that one item says of one resource."""

    least: Quantity | None
    most: Quantity | None
    default: Quantity | None
    request: Quantity | None
    ratio: Quantity | None

    @staticmethod
    def of(item: Mapping[str, Mapping[str, str]], name: str) -> _Bounds:
        def amount(side: str) -> Quantity | None:
            text = (item.get(side) or {}).get(name)
            return None if text is None else Quantity.parse(text)

        return _Bounds(*(amount(side) for side in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")))

    def check(self, name: str, path: str, errors: Errors) -> None:
        least, most, default, request = self.least, self.most, self.default, self.request
        pairs = (
            (least, most, "min", least, "min value {} is greater than max value {}"),
            (least, request, "defaultRequest", request, "min value {} is greater than default request value {}"),
            (request, most, "defaultRequest", request, "default request value {} is greater than max value {}"),
            (
                request,
                default,
                "defaultRequest",
                request,
                "default request value {} is greater than default limit value {}",
            ),
            (least, default, "default", least, "min value {} is greater than default value {}"),
            (default, most, "default", most, "default value {} is greater than max value {}"),
        )
        for low, high, side, shown, words in pairs:
            if low is not None and high is not None and low > high:
                errors.append(bad_value(f"{path}.{side}[{name}]", str(shown), words.format(low, high)))
        self._check_ratio(f"{path}.maxLimitRequestRatio[{name}]", errors)
        can_overcommit = is_native(name) and not is_huge_page(name)
        if not can_overcommit and default is not None and request is not None and default != request:
            words = f"default value {default} must equal to defaultRequest value {request} in {name}"
            errors.append(bad_value(f"{path}.defaultRequest[{name}]", str(request), words))

    def _check_ratio(self, path: str, errors: Errors) -> None:
        if self.ratio is None:
            return
        if self.ratio < Quantity.of(1):
            errors.append(bad_value(path, str(self.ratio), f"ratio {self.ratio} is less than 1"))
        if self.least and self.most is not None:
            highest = self.most.nano / self.least.nano
            if self.ratio.nano / Quantity.of(1).nano > highest:
                words = f"ratio {self.ratio} is greater than max/min = {highest:f}"
                errors.append(bad_value(path, str(self.ratio), words))
