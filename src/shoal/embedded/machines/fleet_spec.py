"""Parses a fleet in one line: `8xp5.48xlarge,4xdgx-a100-80[mig=all-1g.10gb],lab.yaml`.

Entries are separated by commas. Each is a machine of the catalogue, with an optional number before it (`8x`) and
options in brackets after it (`options.py`); or the path of a file of profiles (`profiles.py`), which ends in `.yaml` or
`.yml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from shoal.embedded.machines.fleet import MOST_MACHINES, fleet
from shoal.embedded.machines.fleet_entry import FleetEntry
from shoal.embedded.machines.gpu_software import GpuSoftware
from shoal.embedded.machines.machine import Machine
from shoal.embedded.machines.machine_types import find_shape
from shoal.embedded.machines.options import with_options
from shoal.embedded.machines.profiles import entries_of_file
from shoal.units.errors import UserError, Where, excerpt

EXAMPLE = "8xp5.48xlarge,4xdgx-a100-80"
_ENTRY = re.compile(r"(?:(?P<count>[0-9]+)[x*])?(?P<name>[^\[\]]*?)(?:\[(?P<options>[^\[\]]*)\])?")
_FILES = (".yaml", ".yml")


def read_fleet(text: str, software: GpuSoftware = "included") -> tuple[Machine, ...]:
    """`software`: of the machines that name none."""
    return fleet([_with_software(entry, software) for part in _parts(text) for entry in _entries(part)])


def _with_software(entry: FleetEntry, software: GpuSoftware) -> FleetEntry:
    return entry if entry.gpu_software else msgspec.structs.replace(entry, gpu_software=software)


def _parts(text: str) -> Iterator[str]:
    """The entries between commas; commas inside brackets separate options."""
    start = depth = 0
    for index, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth <= 0:
            yield text[start:index].strip()
            start = index + 1
    yield text[start:].strip()


def _entries(part: str) -> list[FleetEntry]:
    where = Where(path=f"--nodes {part}" if part else "--nodes")
    if part.lower().endswith(_FILES):
        return entries_of_file(part)
    match = _ENTRY.fullmatch(part)
    if match is None or not match["name"].strip():
        what = f"{excerpt(part)} is not a machine" if part else "an entry is empty"
        raise UserError(what, where=where, fix=f"write e.g. {EXAMPLE}")
    count = _count(match["count"], where)
    entry = FleetEntry(find_shape(match["name"].strip(), where), count, where=where)
    return [with_options(entry, match["options"] or "")]


def _count(text: str | None, where: Where) -> int:
    if text is None:
        return 1
    count = int(text) if len(text) <= len(str(MOST_MACHINES)) else MOST_MACHINES + 1
    if not 1 <= count <= MOST_MACHINES:
        raise UserError(f"{text} machines", where=where, fix=f"1 to {MOST_MACHINES} are possible")
    return count
