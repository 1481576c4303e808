"""Parses the options in brackets after a machine: `4xp4d.24xlarge[mig=all-1g.5gb,strategy=mixed,spot]`.

    mig=LAYOUT            how the GPUs are cut at the start: all-1g.10gb, all-balanced, all-disabled, ...;
                          dynamic: instances are created when pods request them
    strategy=STRATEGY     how cut GPUs are advertised: none, single, mixed (mixed)
    time-slicing=N        each GPU offered N times, its users taking turns
    mps=N                 each GPU offered N times, its users side by side
    rename                shared GPUs are offered as nvidia.com/gpu.shared
    one-per-request       a request for two shared GPUs fails, as MPS has it anyway; `many-per-request` allows it
    dra                   GPUs are given to resource claims instead of by the device plugin; with mig=dynamic, their
                          instances are created for claims
    spot                  may be taken away; costs less
    name=PREFIX           what node names begin with
    zone=ZONE             all in one zone; region=REGION
    numa-policy=POLICY    the kubelet's Topology Manager: best-effort, restricted, single-numa-node
    gpu-software=MODE     which GPU software is there at the start: included (all), pods (none: the pods of a GPU
                          operator add it), driver, driver+toolkit
    taint                 nvidia.com/gpu=present:NoSchedule, as GPU pools of clouds have it

Impossible options (MIG on a GPU without it, 7 + 1 slices, both ways of sharing) are rejected here, before a node
exists.
"""

from __future__ import annotations

import re
from typing import get_args

import msgspec

from shoal.devices.layout import NumaPolicy
from shoal.devices.mig_demand import DYNAMIC
from shoal.devices.mig_layout_checks import layout_problem
from shoal.devices.mps_limits import most_mps_clients
from shoal.embedded.machines.fleet_entry import FleetEntry
from shoal.embedded.machines.gpu_software import GPU_SOFTWARE, GpuSoftware
from shoal.embedded.machines.machine import Sharing
from shoal.embedded.machines.machine_types import nearest
from shoal.units.errors import UserError, Where, excerpt

STRATEGIES = ("none", "single", "mixed")
MOST_TIME_SLICES = 1024
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?")
_PLACE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_FLAGS = ("rename", "one-per-request", "many-per-request", "dra", "spot", "taint")
_VALUES = ("mig", "strategy", "time-slicing", "mps", "name", "zone", "region", "numa-policy", "gpu-software")


def with_options(entry: FleetEntry, text: str) -> FleetEntry:
    """The entry with the options of one pair of brackets."""
    given = _given(text, entry.where)
    strategy = given.get("strategy", "")
    if strategy and strategy not in STRATEGIES:
        raise UserError(f"unknown MIG strategy {excerpt(strategy)}", where=entry.where, fix="none, single or mixed")
    changed = msgspec.structs.replace(
        entry,
        mig_config=given.get("mig", ""),
        mig_strategy=strategy,
        sharing=_sharing(given, entry.where),
        gives_by_claims="dra" in given,
        is_spot="spot" in given,
        name=given.get("name", ""),
        zone=given.get("zone", ""),
        region=given.get("region", ""),
        numa_policy=given.get("numa-policy", ""),
        gpu_software=known_software(given["gpu-software"], entry.where) if "gpu-software" in given else None,
        taints=(GPU_TAINT,) if "taint" in given else (),
    )
    return checked(changed)


def checked(entry: FleetEntry) -> FleetEntry:
    """The entry, if such machines are possible; for options and for profile files."""
    where = entry.where
    if entry.name and not _NAME.fullmatch(entry.name):
        fix = "small letters, digits and dashes, at most 42, e.g. name=train"
        raise UserError(f"{excerpt(entry.name)} cannot begin a node's name", where=where, fix=fix)
    for place in (entry.zone, entry.region):
        if place and not _PLACE.fullmatch(place):
            raise UserError(f"{excerpt(place)} cannot be a label's value", where=where, fix="e.g. us-east-1a")
    if entry.numa_policy and entry.numa_policy not in get_args(NumaPolicy):
        known = ", ".join(get_args(NumaPolicy))
        raise UserError(f"unknown policy {excerpt(entry.numa_policy)}", where=where, fix=known)
    _check_gpus(entry)
    return entry


def known_software(text: str, where: Where) -> GpuSoftware:
    found = next((known for known in GPU_SOFTWARE if known == text), None)
    if found is None:
        raise UserError(f"unknown GPU software {excerpt(text)}", where=where, fix=", ".join(GPU_SOFTWARE))
    return found


def _check_gpus(entry: FleetEntry) -> None:
    model, where = entry.shape.gpu_model(), entry.where
    if model is None:
        if entry.mig_config or entry.sharing or entry.mig_strategy:
            raise UserError(f"{entry.shape.name} has no GPU of NVIDIA to cut or share", where=where)
        if entry.gives_by_claims:
            raise UserError(f"{entry.shape.name} has no GPU of NVIDIA for claims", where=where)
        return
    if entry.gives_by_claims and entry.gpu_software not in (None, "included"):
        what = f"gpu-software={entry.gpu_software} does not go with dra: a device plugin advertises the GPUs"
        raise UserError(what, where=where, fix="leave one of them out")
    if entry.gives_by_claims and (entry.sharing is not None or entry.mig_strategy):
        what = "sharing and MIG strategies are settings of the device plugin, which does not run with dra"
        raise UserError(what, where=where, fix="leave them out; claims share GPUs by their own configuration")
    is_named = entry.mig_config not in ("", DYNAMIC) or (entry.mig_config and not model.mig)
    problem = layout_problem(entry.mig_config, model, entry.shape.gpus) if is_named else None
    if problem is not None:
        raise UserError(problem.what, where=where, fix=problem.fix)
    if entry.sharing is None:
        return
    if entry.sharing.strategy == "mps":
        most = most_mps_clients(model)
        if entry.mig_config not in ("", "all-disabled"):
            raise UserError("MPS does not share MIG instances", where=where, fix="use time-slicing there")
    else:
        most = MOST_TIME_SLICES
    if not 2 <= entry.sharing.replicas <= most:
        what = f"{entry.sharing.replicas} replicas by {entry.sharing.strategy} on {model.name}"
        raise UserError(what, where=where, fix=f"2 to {most} are possible")


def _given(text: str, where: Where) -> dict[str, str]:
    given: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in (*_FLAGS, *_VALUES):
            fix = nearest(name, (*_FLAGS, *_VALUES))
            raise UserError(f"{excerpt(name)} is not an option of a machine", where=where, fix=fix)
        if bool(equals and value) != (name in _VALUES):
            what = f"{name} takes no value" if name in _FLAGS else f"{name} has no value"
            raise UserError(what, where=where, fix=name if name in _FLAGS else f"{name}=...")
        if name in given:
            raise UserError(f"{name} is given twice", where=where)
        given[name] = value
    return given


def _sharing(given: dict[str, str], where: Where) -> Sharing | None:
    if "time-slicing" in given and "mps" in given:
        raise UserError("time-slicing and mps exclude each other", where=where, fix="give one of them")
    if "time-slicing" not in given and "mps" not in given:
        idle = [name for name in ("rename", "one-per-request", "many-per-request") if name in given]
        if idle:
            raise UserError(f"{idle[0]} without time-slicing or mps", where=where, fix="add e.g. time-slicing=4")
        return None
    strategy = "mps" if "mps" in given else "time-slicing"
    text = given[strategy]
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise UserError(f"{strategy}={text} is not a number of replicas", where=where, fix=f"e.g. {strategy}=4")
    one_each = "one-per-request" in given or (strategy == "mps" and "many-per-request" not in given)
    return Sharing(
        strategy="mps" if strategy == "mps" else "time-slicing",
        replicas=int(text),
        rename="rename" in given,
        fail_requests_greater_than_one=one_each,
    )
