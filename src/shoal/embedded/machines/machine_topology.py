"""Assigns machines to racks, blocks and zones: racks alternate over the zones of a region, four racks to a block.

Consecutive machines share a rack, because machines of one order are delivered like that, and a job on two of them
should be placed close together. Racks alternate over the zones so that even a small fleet has several zones. Rejected:
alternating zones for single machines, which would split every small job over two zones.

Rack and block have the label names of Kueue's documentation, so that its examples work unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.embedded.machines.fleet_entry import FleetEntry

REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
BLOCK = "cloud.provider.com/topology-block"
RACK = "cloud.provider.com/topology-rack"

_ZONES = 3
_RACKS_PER_BLOCK = 4


class MachineTopology(msgspec.Struct, frozen=True):
    region: str
    zone: str
    block: str
    rack: str

    def labels(self) -> Mapping[str, str]:
        return {REGION: self.region, ZONE: self.zone, BLOCK: self.block, RACK: self.rack}


def place(entry: FleetEntry, rack: int) -> MachineTopology:
    """The place of a machine in the fleet's rack of this number."""
    region = entry.region or entry.shape.region
    if entry.zone:
        zone, in_zone = entry.zone, rack
    else:
        zone, in_zone = _zone_name(entry.shape.provider, region, rack % _ZONES), rack // _ZONES
    return MachineTopology(region, zone, f"{zone}-block-{in_zone // _RACKS_PER_BLOCK}", f"{zone}-rack-{in_zone}")


def _zone_name(provider: str, region: str, number: int) -> str:
    """The name of a zone in the format of each cloud."""
    letter = "abc"[number]
    match provider:
        case "aws":
            return f"{region}{letter}"
        case "azure":
            return f"{region}-{number + 1}"
        case _:
            return f"{region}-{letter}"
