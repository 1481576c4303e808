"""Parses files with machine profiles: a list `machines`, each based on a catalogue entry or described field by field.

    machines:
      - name: lab                  # node names: lab-0, lab-1, ...
        count: 2
        gpu: A100-SXM4-80GB        # a name of the table of GPU models
        gpus: 4
        islands: "0-1,2-3"         # which GPUs see each other over NVLink; all by default numa: "0-1,2-3"
        cpu: 64
        memory: 512Gi
        timeSlicing: 4
        labels: {team: vision}
      - like: p5.48xlarge          # other fields as in the catalogue
        mig: all-1g.10gb

An unknown, wrongly typed or impossible field is rejected with file, line and field.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from shoal.api.yaml_text import read_yaml
from shoal.data.gpus import find_model
from shoal.embedded.machines.fleet import MOST_MACHINES, fleet
from shoal.embedded.machines.fleet_entry import FleetEntry
from shoal.embedded.machines.machine import Machine, Sharing
from shoal.embedded.machines.machine_types import find_shape, nearest, require_model
from shoal.embedded.machines.options import STRATEGIES, checked, known_software
from shoal.embedded.machines.shape import MachineShape, even, usable_mib
from shoal.units.annotation_numbers import groups
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.quantity import Quantity

MOST_GPUS = 16
_MIB = 2**20


class _Profile(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: str = ""
    count: int = 1
    like: str = ""
    gpu: str | None = None
    gpus: int | None = None
    gpu_memory: str | None = None
    islands: str | None = None
    numa: str | None = None
    cpu: int | None = None
    memory: str | None = None
    storage: str | None = None
    arch: str | None = None
    resources: dict[str, str | int] = {}
    mig: str = ""
    strategy: str = ""
    time_slicing: int | None = None
    mps: int | None = None
    rename: bool = False
    one_per_request: bool | None = None
    dra: bool = False
    spot: bool = False
    region: str = ""
    zone: str = ""
    numa_policy: str = ""
    gpu_software: str | None = None
    nodes_per_rack: int | None = None
    usd_per_hour: float | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: list[dict[str, str]] = []


def read_profiles(path: str) -> tuple[Machine, ...]:
    return fleet(entries_of_file(path))


def entries_of_file(path: str) -> list[FleetEntry]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UserError(f"cannot be read: {reason}", where=Where(file=path)) from error
    documents = [document for _, document in read_yaml(text, path)]
    if len(documents) != 1 or not isinstance(documents[0], dict) or set(documents[0]) != {"machines"}:
        raise UserError("one map with the list `machines` is wanted", where=Where(file=path), fix="machines: [...]")
    entries = documents[0]["machines"]
    if not isinstance(entries, list) or not entries:
        raise UserError("the list is empty", where=Where(file=path, path="machines"))
    lines = _lines(text)
    return [
        _entry(entry, Where(file=path, obj=f"line {lines[index]}", path=f"machines[{index}]"))
        for index, entry in enumerate(entries)
    ]


def _lines(text: str) -> list[int]:
    """The line on which each machine begins."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return [] if root is None else [item.start_mark.line + 1 for item in root.value[0][1].value]


def _entry(entry: Any, where: Where) -> FleetEntry:
    if isinstance(entry, dict):
        for key in entry:
            if key not in _FIELDS:
                raise UserError("no such field", where=where.key(str(key)), fix=nearest(str(key), _FIELDS))
    try:
        profile = msgspec.convert(entry, _Profile)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        raise UserError(what, where=where.below(place.removesuffix("`").removeprefix("."))) from error
    if not 1 <= profile.count <= MOST_MACHINES:
        raise UserError(f"{profile.count} machines", where=where.key("count"), fix=f"1 to {MOST_MACHINES} are possible")
    if profile.strategy and profile.strategy not in STRATEGIES:
        fix = "none, single or mixed"
        raise UserError(f"unknown {excerpt(profile.strategy)}", where=where.key("strategy"), fix=fix)
    entry = FleetEntry(
        shape=_shape(profile, where),
        count=profile.count,
        name=profile.name,
        mig_config=profile.mig,
        sharing=_sharing(profile, where),
        gives_by_claims=profile.dra,
        is_spot=profile.spot,
        region=profile.region,
        zone=profile.zone,
        numa_policy=profile.numa_policy,
        taints=tuple(profile.taints),
        labels=profile.labels,
        annotations=profile.annotations,
        where=where,
    )
    software = profile.gpu_software
    if software is not None:
        software = known_software(software, where.key("gpuSoftware"))
        entry = msgspec.structs.replace(entry, gpu_software=software)
    strategy = next((known for known in STRATEGIES if known == profile.strategy), "")
    return checked(msgspec.structs.replace(entry, mig_strategy=strategy))


def _shape(profile: _Profile, where: Where) -> MachineShape:
    if profile.like:
        base = find_shape(profile.like, where.key("like"))
    elif profile.name and profile.cpu and profile.memory:
        base = MachineShape(profile.name, "", "on-prem", profile.cpu, 1024, 200, machine=profile.name)
    else:
        fix = "say `like: p5.48xlarge`, or give name, cpu and memory"
        raise UserError("what kind of machine this is stays open", where=where, fix=fix)
    base = msgspec.structs.replace(
        base,
        cpus=_positive(profile.cpu, base.cpus, where.key("cpu")),
        memory_mib=_mib(profile.memory, base.memory_mib, where.key("memory")),
        storage_gb=_mib(profile.storage, base.storage_gb * 10**9 // _MIB, where.key("storage")) * _MIB // 10**9,
        arch=profile.arch or base.arch,
        per_rack=_positive(profile.nodes_per_rack, base.per_rack, where.key("nodesPerRack")),
        extras={**base.extras, **{name: str(amount) for name, amount in profile.resources.items()}},
    )
    if profile.usd_per_hour is not None:
        usd = max(profile.usd_per_hour, 0.0)
        base = msgspec.structs.replace(base, usd_per_hour=usd, spot_usd_per_hour=usd)
    return _with_gpus(base, profile, where)


def _with_gpus(base: MachineShape, profile: _Profile, where: Where) -> MachineShape:
    name = base.model if profile.gpu is None else profile.gpu
    if profile.gpu:
        require_model(profile.gpu, where.key("gpu"))
    model = find_model(name) if name else None
    count = 0 if model is None else _positive(profile.gpus, base.gpus or 1, where.key("gpus"))
    if model is None and profile.gpus:
        raise UserError("the GPU is not named", where=where.key("gpu"), fix="e.g. gpu: A100-SXM4-80GB")
    if count > MOST_GPUS:
        raise UserError(f"{count} GPUs", where=where.key("gpus"), fix=f"at most {MOST_GPUS} are in one machine")
    is_same = profile.gpu is None and count == base.gpus
    memory = base.gpu_memory_mib if is_same else usable_mib(model) if model is not None else 0
    linked = model is not None and bool(model.link) and "bridge" not in model.link
    islands = base.islands if is_same else even(count, 1 if linked else count)
    return msgspec.structs.replace(
        base,
        model=name,
        gpus=count,
        gpu_memory_mib=_mib(profile.gpu_memory, memory, where.key("gpuMemory")),
        islands=_grouped(profile.islands, islands, count, where.key("islands")),
        numa=_grouped(profile.numa, base.numa if is_same else even(count, 1), count, where.key("numa")),
    )


def _grouped(text: str | None, default: tuple[int, ...], count: int, where: Where) -> tuple[int, ...]:
    if text is None:
        return default
    found = groups(text, where)
    if len(found) != count or -1 in found:
        raise UserError(f"not every one of the {count} GPUs is in a group", where=where, fix='e.g. "0-1,2-3"')
    return found


def _sharing(profile: _Profile, where: Where) -> Sharing | None:
    if profile.time_slicing is not None and profile.mps is not None:
        raise UserError("timeSlicing and mps exclude each other", where=where.key("mps"), fix="give one of them")
    if profile.mps is not None:
        one_each = profile.one_per_request is not False
        return Sharing("mps", profile.mps, profile.rename, one_each)
    if profile.time_slicing is not None:
        return Sharing("time-slicing", profile.time_slicing, profile.rename, bool(profile.one_per_request))
    return None


def _positive(given: int | None, default: int, where: Where) -> int:
    if given is not None and not 1 <= given <= MOST_MACHINES:
        raise UserError(f"{given} is out of range", where=where, fix=f"1 to {MOST_MACHINES}")
    return default if given is None else given


def _mib(text: str | None, default: int, where: Where) -> int:
    if text is None:
        return default
    try:
        amount = Quantity.parse(text)
    except UserError as error:
        raise error.at(where) from error
    mib = amount.nano // 10**9 // _MIB
    if mib < 1:
        raise UserError(f"{excerpt(text)} is less than 1Mi", where=where, fix="e.g. 512Gi")
    return mib


_FIELDS = tuple(field.encode_name for field in msgspec.structs.fields(_Profile))
