"""Translates values that guides contain and that NVIDIA's chart does not have or does not mean so, with a warning.

`mig.config`, `mps.enabled`, `mps.replicas` and `nodeFeatureDiscovery.enabled` are no options of the chart; helm ignores
them without a word. Their meaning is plain, so they become the options that have that effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from shoal.install.bundle import LEAST_SAFE_TOOLKIT
from shoal.install.values.known import flat
from shoal.units.errors import UserError, Where

_MPS = "mps"
_MPS_CONFIG = "shoal-mps-config"
_DEFAULT_MPS_REPLICAS = 2
_TOOLKIT_TAG = re.compile(r"(v?)([0-9]{1,5})\.([0-9]{1,5})\.([0-9]{1,5})(-[0-9A-Za-z.-]{1,60})?")
_PLAIN_TAGS = (1, 18, 0)
_OLDER_SUFFIX = "-ubuntu20.04"


def translated(given: dict[str, Any], where: Where) -> tuple[dict[str, Any], list[str]]:
    """The values with names of the chart, and a warning for each that had another. `given` is not changed."""
    found = {name: dict(value) if isinstance(value, dict) else value for name, value in given.items()}
    warnings = [*_discovery(found), *_layout(found), *_sharing(found, where), *_toolkit(found)]
    return found, [f"{where}: {warning}" if str(where) else warning for warning in warnings]


def _group(values: dict[str, Any], name: str) -> dict[str, Any]:
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def _discovery(values: dict[str, Any]) -> Iterator[str]:
    older = _group(values, "nodeFeatureDiscovery")
    if "enabled" in older:
        del values["nodeFeatureDiscovery"]
        _below(values, "nfd").setdefault("enabled", older["enabled"])
        yield "nodeFeatureDiscovery.enabled is not an option of the chart; it is read as nfd.enabled"


def _layout(values: dict[str, Any]) -> Iterator[str]:
    mig = _group(values, "mig")
    if "config" in mig:
        name = mig.pop("config")
        _below(_below(values, "migManager"), "config").setdefault("default", name)
        yield (
            f"mig.config is not an option of the chart; it is read as migManager.config.default={name}, the layout of "
            "nodes without the label nvidia.com/mig.config"
        )


def _sharing(values: dict[str, Any], where: Where) -> Iterator[str]:
    mps = _group(values, _MPS)
    if not mps:
        return
    replicas = mps.get("replicas", _DEFAULT_MPS_REPLICAS)
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 2:
        raise UserError("must be a whole number of at least 2", where=where.below("mps.replicas"))
    del values[_MPS]
    if mps.get("enabled") in (False, "false"):
        yield "mps.enabled is not an option of the chart; MPS is off without a configuration of the device plugin"
        return
    text = (
        f"version: v1\nsharing:\n  mps:\n    resources:\n      - name: nvidia.com/gpu\n        replicas: {replicas}\n"
    )
    config = _below(_below(values, "devicePlugin"), "config")
    if config:
        yield (
            "mps.enabled and mps.replicas are not options of the chart, and devicePlugin.config is given too: write "
            "sharing.mps into that configuration"
        )
        return
    config |= {"create": True, "name": _MPS_CONFIG, "default": _MPS, "data": {_MPS: text}}
    yield (
        "mps.enabled and mps.replicas are not options of the chart; they are read as a configuration of the device "
        f"plugin with sharing.mps, {replicas} replicas of nvidia.com/gpu"
    )


def _toolkit(values: dict[str, Any]) -> Iterator[str]:
    toolkit = _group(values, "toolkit")
    tag = _TOOLKIT_TAG.fullmatch(str(toolkit.get("version") or ""))
    if tag is None:
        return
    numbers = (int(tag[2]), int(tag[3]), int(tag[4]))
    suffix = tag[5] or ("" if numbers >= _PLAIN_TAGS else _OLDER_SUFFIX)
    meant = f"v{tag[2]}.{tag[3]}.{tag[4]}{suffix}"
    if meant != toolkit["version"]:
        yield f"toolkit.version {toolkit['version']} is not a tag of the image; it is read as {meant}"
        toolkit["version"] = meant
    if numbers < LEAST_SAFE_TOOLKIT:
        safe = ".".join(map(str, LEAST_SAFE_TOOLKIT))
        yield (
            f"toolkit.version {meant} lets containers escape to the host (CVE-2025-23266, CVE-2025-23359); use {safe} "
            "or newer"
        )


def _below(values: dict[str, Any], name: str) -> dict[str, Any]:
    found = values.get(name)
    values[name] = dict(found) if isinstance(found, dict) else {}
    below: dict[str, Any] = values[name]
    return below


def advice(values: dict[str, Any]) -> Iterator[str]:
    """About effective values that are valid and have less effect than they seem to have."""
    flattened = dict(flat(values))
    name, default = flattened["devicePlugin.config.name"], flattened["devicePlugin.config.default"]
    if name and not default:
        yield (
            f"devicePlugin.config.name is {name} and devicePlugin.config.default is empty: the configuration has no "
            "effect on nodes without the label nvidia.com/device-plugin.config"
        )
    if not flattened["nfd.enabled"]:
        yield (
            "nfd.enabled is false: nodes get no GPU stack until another discovery writes the label "
            "feature.node.kubernetes.io/pci-10de.present"
        )
