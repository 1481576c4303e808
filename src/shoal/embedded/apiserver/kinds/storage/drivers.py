"""Strategies of CSIDriver, CSINode and CSIStorageCapacity."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import IMMUTABLE, FieldError, bad_value, duplicate, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed, add_faults, add_negative
from shoal.embedded.apiserver.kinds.core.volumes import check_driver_name
from shoal.embedded.apiserver.kinds.labels import check_selector
from shoal.embedded.apiserver.kinds.spellings import label_key_faults, subdomain_faults
from shoal.embedded.apiserver.strategy import Strategy
from shoal.units.quantity import Quantity

_USUAL = {
    "attachRequired": True, "podInfoOnMount": False, "storageCapacity": False, "requiresRepublish": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType", "seLinuxMount": False,
}  # fmt: skip
_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES = ("Persistent", "Ephemeral")
_SHORTEST_TOKEN_S, _LONGEST_TOKEN_S = 600, 1 << 32
_LONGEST_NODE_ID = 256


_TOKENS_SHOWN = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


class DriverStrategy(Strategy):
    counts_generation = True
    returns_deleted = True
    needs_version = True

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        for key, value in _USUAL.items():
            spec.setdefault(key, value)
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def prepare_create(self, obj: Obj) -> None:
        """Generations are counted from the first change."""
        obj["metadata"].pop("generation", None)

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:  # noqa: ARG002 - the signature is the strategy's
        spec = new["spec"]
        if spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
            return [_TOKENS_SHOWN]
        return []

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        if (policy := spec.get("fsGroupPolicy")) is not None and policy not in _GROUP_POLICIES:
            errors.append(not_supported("spec.fsGroupPolicy", policy, _GROUP_POLICIES))
        _check_tokens(spec.get("tokenRequests") or [], "spec.tokenRequests", errors)
        for mode in spec.get("volumeLifecycleModes") or ():
            if mode not in _LIFECYCLES:
                errors.append(not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLES))
        period_s = spec.get("nodeAllocatableUpdatePeriodSeconds")
        if period_s is not None and period_s < 10:
            words = "must be greater than or equal to 10 seconds"
            errors.append(bad_value("spec.nodeAllocatableUpdatePeriodSeconds", period_s, words))
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors = self.validate(new)
        spec, before = new["spec"], old["spec"]
        # Kubernetes has misspelt the first path, and clients see it so.
        add_changed(errors, "spec.attachedRequired", spec.get("attachRequired"), before.get("attachRequired"))
        modes = spec.get("volumeLifecycleModes")
        add_changed(errors, "spec.volumeLifecycleModes", modes, before.get("volumeLifecycleModes"))
        return errors


def _check_tokens(requests: list[Obj], path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for place, one in enumerate(requests):
        audience, life_s = one.get("audience", ""), one.get("expirationSeconds")
        if audience in seen:
            errors.append(duplicate(f"{path}[{place}].audience", audience))
            continue
        seen.add(audience)
        here = f"{path}[{place}].expirationSeconds"
        if life_s is not None and life_s < _SHORTEST_TOKEN_S:
            errors.append(bad_value(here, life_s, "may not specify a duration less than 10 minutes"))
        if life_s is not None and life_s > _LONGEST_TOKEN_S:
            errors.append(bad_value(here, life_s, "may not specify a duration larger than 2^32 seconds"))


class DriverNodeStrategy(Strategy):
    counts_generation = False
    returns_deleted = True
    needs_version = True

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("drivers", [])

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        names: set[str] = set()
        for place, driver in enumerate(obj["spec"].get("drivers") or ()):
            path, name = f"spec.drivers[{place}]", driver.get("name", "")
            check_driver_name(name, f"{path}.name", errors)
            node = driver.get("nodeID", "")
            if not node:
                errors.append(required(f"{path}.nodeID"))
            if len(node.encode()) > _LONGEST_NODE_ID:
                errors.append(bad_value(f"{path}.nodeID", node, f"must be {_LONGEST_NODE_ID} characters or less"))
            add_negative(errors, f"{path}.allocatable.count", (driver.get("allocatable") or {}).get("count"))
            if name in names:
                errors.append(duplicate(f"{path}.name", name))
            names.add(name)
            _check_keys(driver.get("topologyKeys") or [], path, errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors = self.validate(new)
        former = {one.get("name"): _fixed(one) for one in old["spec"].get("drivers") or ()}
        for one in new["spec"].get("drivers") or ():
            if former.get(one.get("name"), _fixed(one)) != _fixed(one):
                errors.append(bad_value("spec.drivers", _fixed(one), IMMUTABLE))
        return errors


def _fixed(driver: Obj) -> Obj:
    return {key: value for key, value in driver.items() if key != "allocatable"}


def _check_keys(keys: list[str], path: str, errors: Errors) -> None:
    for place, key in enumerate(keys):
        if not key:
            errors.append(required(path))
        if key in keys[:place]:
            errors.append(duplicate(path, key))
        add_faults(errors, path, key, label_key_faults(key))


class CapacityStrategy(Strategy):
    counts_generation = False
    needs_version = True

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        check_selector(obj.get("nodeTopology"), "nodeTopology", errors)
        name = obj.get("storageClassName", "")
        add_faults(errors, "storageClassName", name, subdomain_faults(name))
        amount = obj.get("capacity")
        if amount is not None and Quantity.parse(amount).nano < 0:
            errors.append(bad_value("capacity", amount, "must be greater than or equal to 0"))
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors: Errors = []
        add_changed(errors, "nodeTopology", new.get("nodeTopology"), old.get("nodeTopology"))
        add_changed(errors, "storageClassName", new.get("storageClassName"), old.get("storageClassName"))
        return self.validate(new) + errors
