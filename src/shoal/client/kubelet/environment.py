"""Computes the environment and the command of a container: `env`, `envFrom`, and `$(NAME)` in values and arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from shoal.client.kubelet.pod_fields import Addresses, field_value, resource_value
from shoal.client.kubelet.references import Sources, all_values, value_of

Obj = dict[str, Any]
_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_NAME = re.compile(r"[^=\0]+")


class Surroundings(msgspec.Struct, frozen=True):
    """What a container's environment has besides its spec."""

    addresses: Addresses
    allocatable: Mapping[str, str]
    sources: Sources
    given: Mapping[str, str] = {}
    """Variables from the runtime and the node: PATH, HOME. The spec may replace them."""
    fixed: Mapping[str, str] = {}
    """Variables of the devices that were allocated: they come before those of the spec."""


def environment_of(pod: Obj, container: Obj, around: Surroundings) -> dict[str, str]:
    """Raises MissingSourceError."""
    found = dict(around.given)
    known: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        prefix = source.get("prefix", "")
        for of, reference in (("configmap", source.get("configMapRef")), ("secret", source.get("secretRef"))):
            if reference is not None:
                values = all_values(around.sources, "configmap" if of == "configmap" else "secret", reference)
                known |= {f"{prefix}{key}": value.decode(errors="replace") for key, value in values.items()}
    found |= known
    references = {**around.given, **known, **around.fixed}
    for variable in container.get("env") or ():
        if variable["name"] in around.fixed:
            continue
        value = _value(pod, container, variable, around)
        if value is None:
            continue
        found[variable["name"]] = references[variable["name"]] = expanded(value, references)
    found |= around.fixed
    return {key: value.replace("\0", "") for key, value in found.items() if _NAME.fullmatch(key)}


def words_of(container: Obj, field: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """`command` or `args`; empty if the image defines it."""
    return tuple(expanded(word, environment) for word in container.get(field) or ())


def expanded(text: str, known: Mapping[str, str]) -> str:
    """`$(NAME)` of variables that are known; `$$` is one dollar sign, and an unknown reference stays."""
    return _REFERENCE.sub(lambda met: "$" if met[0] == "$$" else known.get(met[1], met[0]), text)


def names_in(text: str) -> Iterator[str]:
    """The variables to which a text refers."""
    return (met[1] for met in _REFERENCE.finditer(text) if met[1])


def _value(pod: Obj, container: Obj, variable: Obj, around: Surroundings) -> str | None:
    source = variable.get("valueFrom")
    if not source:
        return str(variable.get("value") or "")
    if "fieldRef" in source:
        return field_value(pod, source["fieldRef"].get("fieldPath", ""), around.addresses)
    if "resourceFieldRef" in source:
        return resource_value(pod, container, source["resourceFieldRef"], around.allocatable)
    namespace = pod["metadata"]["namespace"]
    if "configMapKeyRef" in source:
        found = value_of(around.sources, "configmap", source["configMapKeyRef"], namespace)
    else:
        found = value_of(around.sources, "secret", source["secretKeyRef"], namespace)
    return None if found is None else found.decode(errors="replace")
