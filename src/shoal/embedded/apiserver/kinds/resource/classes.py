"""DeviceClasses: what administrators offer by name."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, too_many
from shoal.embedded.apiserver.kinds.amounts import is_extended
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj
from shoal.embedded.apiserver.kinds.resource.requests import MOST_CONFIGS, check_configuration
from shoal.embedded.apiserver.kinds.resource.selectors import check_selectors
from shoal.embedded.apiserver.strategy import Strategy


class DeviceClassStrategy(Strategy):
    counts_generation = True
    returns_deleted = True

    def default(self, obj: Obj) -> None:
        obj.setdefault("spec", {})

    def validate(self, obj: Obj) -> list[FieldError]:
        return _checked(obj["spec"], {})

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        return _checked(new["spec"], old["spec"])


def _checked(spec: Obj, before: Obj) -> Errors:
    errors: Errors = []
    selectors, configs = spec.get("selectors") or [], spec.get("config") or []
    check_selectors(selectors, "spec.selectors", errors, is_stored=selectors == before.get("selectors"))
    if len(configs) > MOST_CONFIGS:
        errors.append(too_many("spec.config", len(configs), MOST_CONFIGS))
    else:
        for place, config in enumerate(configs):
            check_configuration(config, f"spec.config[{place}]", errors)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        errors.append(bad_value("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return errors
