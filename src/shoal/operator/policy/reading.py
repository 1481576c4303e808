"""Reads the spec of a ClusterPolicy, and names the fields that have no effect.

A misspelled field is a warning with the field that is most like it, not an error: the API server of many clusters keeps
unknown fields, and a policy of a newer operator must still work. A value of a wrong type is a `UserError` with the
place of the field, because the component would silently run with a default.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, islice
from typing import Any, TypeVar, get_type_hints

import msgspec

from shoal.operator.policy.spec import ClusterPolicySpec
from shoal.operator.upgrades.policy import parse_upgrade_policy
from shoal.units.errors import UserError, Where
from shoal.units.near_texts import meant_words

T = TypeVar("T")
_PLACE = re.compile(r" - at `\$([^`]*)`$")
_MOST_WARNINGS = 32
_WITHOUT_EFFECT = {
    "spec.psp": "PodSecurityPolicy was removed in Kubernetes 1.25",
    "spec.operator.initContainer": "Shoal's own image is used",
    "spec.operator.use_ocp_driver_toolkit": "the driver toolkit of OpenShift is not supported",
    "spec.dcgm.hostPort": "DCGM listens on port 5555 of its Service",
    "spec.cdi.default": "CDI is used for all containers if it is enabled",
    "spec.driver.rollingUpdate": "spec.driver.upgradePolicy decides how drivers are updated",
    "spec.driver.licensingConfig.configMapName": "name a Secret in spec.driver.licensingConfig.secretName",
}
"""Fields of the custom resource that are known, with the reason why they have no effect."""
_IMAGE_COMPONENTS = ("devicePlugin", "gfd", "dcgmExporter", "migManager", "validator")
"""Components that run Shoal's image unless the policy names another."""


class ReadPolicy(msgspec.Struct, frozen=True):
    spec: ClusterPolicySpec
    warnings: tuple[str, ...] = ()


def read_cluster_policy(written: Any, where: Where | None = None) -> ReadPolicy:
    """`written` is the value of `spec`. Raises `UserError`."""
    place = (where or Where()).below("spec")
    if not isinstance(written, Mapping | None):
        raise UserError("must be an object", where=place)
    given = without_nulls(written or {})
    spec = converted(given, ClusterPolicySpec, place)
    driver = given.get("driver", {})
    if "upgradePolicy" in driver:
        parse_upgrade_policy(driver["upgradePolicy"], place.below("driver").below("upgradePolicy"))
    warnings = chain(unknown_fields(given, ClusterPolicySpec, "spec"), _ineffective(given))
    return ReadPolicy(spec, tuple(islice(warnings, _MOST_WARNINGS)))


def converted(given: Mapping[str, Any], type_: type[T], place: Where) -> T:
    """Raises `UserError` with the place of the field."""
    try:
        return msgspec.convert(given, type_)
    except msgspec.ValidationError as error:
        raise _translated(error, place) from error


def _translated(error: msgspec.ValidationError, place: Where) -> UserError:
    text = str(error)
    found = _PLACE.search(text)
    path = found.group(1).lstrip(".") if found is not None else ""
    what = text[: found.start()] if found is not None else text
    return UserError(f"{what[:1].lower()}{what[1:]}", where=place.below(path) if path else place)


def without_nulls(value: Any) -> Any:
    """The API server treats a field with null as absent."""
    if isinstance(value, Mapping):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    return value


def unknown_fields(
    given: Mapping[str, Any], type_: type[msgspec.Struct], path: str, further: Collection[str] = ()
) -> Iterator[str]:
    """`further`: known fields that are not of this type."""
    hints = get_type_hints(type_)
    known = {one.encode_name: hints[one.name] for one in msgspec.structs.fields(type_)}
    for name, value in given.items():
        if name not in known:
            if name not in further:
                yield f"{path}.{name}: unknown field{meant_words(name, {*known, *further})}; it has no effect"
            continue
        nested = known[name]
        if isinstance(nested, type) and issubclass(nested, msgspec.Struct) and isinstance(value, Mapping):
            yield from unknown_fields(value, nested, f"{path}.{name}")


def _ineffective(given: Mapping[str, Any]) -> Iterator[str]:
    for path, why in _WITHOUT_EFFECT.items():
        if _has(given, path.split(".")[1:]):
            yield f"{path}: no effect: {why}"
    for name in _IMAGE_COMPONENTS:
        component = given.get(name, {})
        if component.get("version") and not (component.get("repository") or component.get("image")):
            yield (
                f"spec.{name}.version: no effect: without spec.{name}.repository the component runs Shoal's image; "
                "name the repository to use NVIDIA's image"
            )
    plugin = given.get("devicePlugin", {}).get("config", {})
    if plugin.get("default") and not plugin.get("name"):
        yield "spec.devicePlugin.config.default: no effect: spec.devicePlugin.config.name names no ConfigMap"


def _has(given: Mapping[str, Any], steps: list[str]) -> bool:
    found: Any = given
    for step in steps:
        if not isinstance(found, Mapping) or step not in found:
            return False
        found = found[step]
    # A chart renders all its values: one that is off or empty asks for nothing.
    return found not in (False, "", {}, []) and found != {"enabled": False}
