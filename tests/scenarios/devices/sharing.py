"""Cases of the device plugin's configuration and of what it advertises; `stage` names what is decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from shoal.devices.advertised_devices import inventory
from shoal.devices.discovered import layouts_of, slots_of
from shoal.devices.mps_limits import check_mps_clients, most_clients_of
from shoal.devices.plugin_config import PluginConfig, config_of_block, started_config
from shoal.devices.plugin_file import PluginFile, parse_plugin_file, pattern_matches, plugin_file
from shoal.devices.plugin_flags import PluginFlags
from shoal.devices.plugin_resources import PluginConfigError, SharedResource, SharingBlock
from shoal.devices.port import InstalledGpu, MigInstance
from shoal.devices.requested_devices import request_problem

from ..result import Result
from .verdicts import Answer, Raw, Refused, verdict

FAMILY = "sharing"


def results_of_case(raw: Raw) -> list[Result]:
    if raw.get("stage") not in _STAGES:
        return [Result(str(raw.get("id", "")), FAMILY, "out_of_scope", reason=f"stage {raw.get('stage')}")]
    results = verdict(raw, FAMILY, decide, differences)
    if raw["stage"] == "mps-limit":
        # It is expected beside a refusal too.
        wanted, most = (raw.get("expect") or {}).get("maxClients"), most_clients_of(str(raw["computeCapability"]))
        if wanted not in (None, most):
            results[0].status, results[0].level = "fail", 0
            results[0].diff.append(f"maxClients: expected {wanted}, got {most}")
    return results


def decide(raw: Raw) -> Answer:
    try:
        return _STAGES[raw["stage"]](raw)
    except PluginConfigError as error:
        return Refused(error.refusal, str(error))


def differences(answer: Answer, expect: Raw) -> list[str]:
    """Every field of the expectation is compared with the field of that name."""
    wanted = expect.get("accepted", expect)
    given = {"allowed": answer} if isinstance(answer, bool) else answer
    return [
        f"{name}: expected {value!r}, got {given.get(name)!r}"
        for name, value in wanted.items()
        if _same_order(given.get(name)) != _same_order(value)
    ]


def _same_order(value: Any) -> Any:
    """Ids are sets, and one strategy may be written without a list."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return {name: sorted(one) if name == "ids" else _same_order(one) for name, one in value.items()}
    return value


def _parse(raw: Raw) -> Raw:
    file = parse_plugin_file(raw["document"])
    return _written(file, file.block)


def _effective(raw: Raw) -> Raw:
    file = parse_plugin_file(raw["document"])
    return _written(file, file.in_force()[0])


def _start(raw: Raw) -> Raw:
    config = started_config(parse_plugin_file(raw["document"]), PluginFlags())
    return {"config": msgspec.to_builtins(config)}


def _pattern(raw: Raw) -> Raw:
    return {"matches": pattern_matches(raw["pattern"], raw["input"])}


def _request(raw: Raw) -> Answer:
    problem = request_problem(raw["request"], {*raw["devices"]}, _config(raw))
    return True if problem is None else Refused(problem.refusal, problem.message)


def _mps_limit(raw: Raw) -> Answer:
    most = most_clients_of(str(raw["computeCapability"]))
    check_mps_clients(raw["replicas"], most, "nvidia.com/gpu")
    return {"maxClients": most, "allowed": True}


def _advertise(raw: Raw) -> Answer:
    gpus = [_gpu(one) for one in raw["machine"]["gpus"]]
    found = inventory(slots_of(gpus), layouts_of(gpus), _config(raw))
    if found.problem is not None:
        return Refused(found.problem.refusal, found.problem.message)
    return {
        "resources": {
            name: {"count": len(devices), "ids": [device.id for device in devices]}
            for name, devices in found.devices.items()
            if devices
        }
    }


_STAGES: Mapping[str, Callable[[Raw], Answer]] = {
    "advertise": _advertise,
    "effective": _effective,
    "mps-limit": _mps_limit,
    "parse": _parse,
    "pattern": _pattern,
    "request": _request,
    "start": _start,
}


def _config(raw: Raw) -> PluginConfig:
    file = plugin_file({"version": "v1", "sharing": raw.get("sharing") or {}})
    return config_of_block(file.sharing, file.in_force()[0], raw.get("migStrategy", "none"))


def _written(file: PluginFile, block: SharingBlock | None) -> Raw:
    flags = file.flags.over(PluginFlags())
    return {
        "version": file.version,
        "strategy": file.sharing,
        "renameByDefault": block is not None and block.rename_by_default,
        "failRequestsGreaterThanOne": None if block is None else block.one_per_request,
        "resources": [] if block is None else [_resource(one) for one in block.resources],
        "imexChannelIDs": list(file.imex_channels),
        "sleepIntervalNanoseconds": flags.features.sleep_interval_ns,
        "deviceListStrategy": list(flags.device_list_strategy),
        "migStrategy": flags.mig_strategy,
    }


def _resource(one: SharedResource) -> Raw:
    devices = list(one.devices) if isinstance(one.devices, tuple) else one.devices
    found: Raw = {"name": one.name, "devices": devices, "replicas": one.replicas}
    return {**found, "rename": one.rename} if one.rename else found


def _gpu(one: Raw) -> InstalledGpu:
    """Only privileged programs know where instances are; the cases do not say."""
    instances = tuple(
        MigInstance(cut["uuid"], cut["profile"], number, number, 1, None)
        for number, cut in enumerate(one.get("migInstances") or ())
    )
    is_mig = one["migEnabled"] if one["migEnabled"] or instances else None
    return InstalledGpu(one["index"], one["uuid"], one["model"], "", is_mig=is_mig, instances=instances)
