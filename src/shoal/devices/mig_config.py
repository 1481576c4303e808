"""Parses files of MIG layouts in the format of mig-parted (v1), which NVIDIA's MIG manager reads.

    version: v1
    mig-configs:
      custom-mixed:
        - devices: all                # or [0, 1]
          device-filter: ["0x20B210DE"]
          mig-enabled: true
          mig-devices: {"2g.10gb": 3, "1g.5gb": 1}

A file that mig-parted refuses is refused with its message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.api.yaml_text import read_yaml
from shoal.devices.mig_layouts import MigSpec, Specs
from shoal.devices.mig_profile_names import MigNameError, parse_profile
from shoal.units.errors import UserError

VERSION = "v1"
_VERSION, _CONFIGS = "version", "mig-configs"
_DEVICES, _ENABLED, _INSTANCES, _FILTER = "devices", "mig-enabled", "mig-devices", "device-filter"
_FIELDS = (_FILTER, _DEVICES, _ENABLED, _INSTANCES)


class MigConfigError(Exception):
    """mig-parted would refuse the file; with a message."""


def parse_mig_config(text: str) -> dict[str, Specs]:
    """The layouts by name."""
    try:
        documents: list[Any] = [document for _, document in read_yaml(text)]
    except UserError as error:
        raise MigConfigError(str(error)) from error
    return read_mig_config(documents[0] if documents else {})


def read_mig_config(document: Any) -> dict[str, Specs]:
    if not isinstance(document, Mapping):
        raise MigConfigError(f"the file is {_kind(document)}, not an object with {_VERSION} and {_CONFIGS}")
    if document and _VERSION not in document:
        raise MigConfigError(f"unable to parse with missing '{_VERSION}' field")
    version = document.get(_VERSION, "")
    if version != VERSION:
        raise MigConfigError(f"unknown version: {version}")
    for name in document:
        if name not in (_VERSION, _CONFIGS):
            raise MigConfigError(f"unexpected field: {name}")
    if _CONFIGS not in document:
        return {}
    configs = document[_CONFIGS]
    if not isinstance(configs, Mapping):
        raise MigConfigError(f"{_CONFIGS} is {_kind(configs)}, not an object")
    if not configs:
        raise MigConfigError(f"at least one entry in '{_CONFIGS}' is required")
    return {name: _specs(name, entries) for name, entries in configs.items()}


def selected_config(configs: Mapping[str, Specs], selected: str | None) -> Specs:
    """The layout of that name; without a name, the only one of the file."""
    if not selected:
        if len(configs) > 1:
            raise MigConfigError("missing required flag 'selected-config' when more than one config available")
        selected = next(iter(configs), "")
    if selected not in configs:
        raise MigConfigError(f"selected mig-config not present: {selected}")
    return configs[selected]


def _specs(name: str, entries: Any) -> Specs:
    if not isinstance(entries, list):
        raise MigConfigError(f"{name} is {_kind(entries)}, not a list")
    if not entries:
        raise MigConfigError(f"at least one entry in '{name}' is required")
    found = []
    for number, entry in enumerate(entries):
        try:
            found.append(_spec(entry))
        except MigConfigError as error:
            raise MigConfigError(f"{name}[{number}]: {error}") from error
    return tuple(found)


def _spec(entry: Any) -> MigSpec:
    if not isinstance(entry, Mapping):
        raise MigConfigError(f"the entry is {_kind(entry)}, not an object")
    for name in (_DEVICES, _ENABLED):
        if name not in entry:
            raise MigConfigError(f"missing required field: {name}")
    for name in entry:
        if name not in _FIELDS:
            raise MigConfigError(f"unexpected field: {name}")
    enabled = entry[_ENABLED]
    if not isinstance(enabled, bool):
        raise MigConfigError(f"{_ENABLED} is {_kind(enabled)}, not true or false")
    if enabled and _INSTANCES not in entry:
        raise MigConfigError(f"missing required field '{_INSTANCES}' when '{_ENABLED}' is true")
    counts = _counts(entry.get(_INSTANCES, {}))
    if counts and not enabled:
        raise MigConfigError(f"MIG devices included when '{_ENABLED}' is false")
    return MigSpec(enabled=enabled, counts=counts, devices=_devices(entry), filters=_filters(entry))


def _devices(entry: Mapping[str, Any]) -> Any:
    devices = entry[_DEVICES]
    if isinstance(devices, str):
        if devices != "all":
            raise MigConfigError(f"invalid string input for '{_DEVICES}': {devices}")
        return "all"
    if not isinstance(devices, list) or not all(_is_integer(one) for one in devices):
        raise MigConfigError(f"{_DEVICES} is {_kind(devices)}, not all or a list of indexes")
    return tuple(devices)


def _filters(entry: Mapping[str, Any]) -> tuple[str, ...]:
    found = entry.get(_FILTER, "")
    if isinstance(found, str):
        return (found,) if found else ()
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise MigConfigError(f'{_FILTER} is {_kind(found)}, not a text or a list of texts such as "0x233010DE"')
    return tuple(found)


def _counts(instances: Any) -> tuple[tuple[str, int], ...]:
    if not isinstance(instances, Mapping) or not all(_is_integer(count) for count in instances.values()):
        raise MigConfigError(f"{_INSTANCES} is {_kind(instances)}, not an object of profiles with a count each")
    found: dict[str, int] = {}
    for text, count in instances.items():
        try:
            name = parse_profile(text)
        except MigNameError as error:
            raise _invalid(f"invalid format for '{text}': {error}") from error
        if count < 0:
            raise _invalid(f"invalid count for '{text}': {count}")
        found[name.text] = found.get(name.text, 0) + count
    if found and not any(found.values()):
        raise _invalid("all counts for all MigProfiles are 0")
    return tuple(sorted((name, count) for name, count in found.items() if count))


def _invalid(what: str) -> MigConfigError:
    return MigConfigError(f"error validating values in '{_INSTANCES}' field: {what}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    kinds = (
        (bool, "a truth value"),
        (str, "a text"),
        (int | float, "a number"),
        (list, "a list"),
        (Mapping, "an object"),
    )
    return next((words for kind, words in kinds if isinstance(value, kind)), "empty")
