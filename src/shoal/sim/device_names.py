"""The devices of a grant as people know them: an index, and for a MIG instance the place where it was cut."""

from __future__ import annotations

from shoal.devices.tiling import tiling
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import DeviceGrant, MigTiles
from shoal.engine.devices.mig import starts_of
from shoal.views.decision import Device


def device_names(cluster: Cluster, ask: Ask, node: str, grant: DeviceGrant | None) -> list[Device]:
    """Each device once; MIG instances one by one, as `<device>:<profile>@<first slice>`; claimed ones by their names.

    Where a node advertises instances that are cut already, they cannot be distinguished and have no names.
    Devices of claims go by their full names.
    """
    if grant is None:
        return []
    claimed = dict.fromkeys(pick.device for claim in grant.claims for pick in claim.picks)
    row = cluster.row_of.get(node)
    layout = cluster.devices.odd.get(row) if row is not None else None
    if isinstance(ask.devices, MigTiles) and layout is not None and layout.mig:
        return [*_tiles(ask.devices, layout.mig, grant), *claimed]
    return [*grant.devices, *claimed]


def _tiles(demand: MigTiles, mig: str, grant: DeviceGrant) -> list[str]:
    """A grant keeps places only; which profile took one follows from where it starts and how much it takes."""
    there = tiling(mig)
    left = [name for name, count in demand.tiles for _ in range(count)]
    named = []
    for (device, start), (_, _, amount) in zip(starts_of(grant), grant.parts, strict=True):
        # One digit per slice, and one more for the media engines.
        width = f"{amount:x}".count("1")
        for name in left:
            profile = there.profile(name)
            if profile is not None and start in profile.starts and profile.width + profile.holds_media() == width:
                left.remove(name)
                named.append(f"{device}:{name}@{start}")
                break
        else:
            named.append(f"{device}@{start}")
    return named
