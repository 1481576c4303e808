"""Reads and writes the record of a release."""

from __future__ import annotations

from shoal.client.kind import Kind
from shoal.install.inventory import ReleaseRecord, config_map_name, from_api, to_api
from shoal.install.manifest import Address
from shoal.units.errors import UserError, Where
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.facts_reader import RELEASES

_CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")


def record_address(name: str, namespace: str) -> Address:
    return Address("v1", "ConfigMap", namespace, config_map_name(name))


async def find_record(writer: ClusterWriter, name: str, namespace: str) -> ReleaseRecord | None:
    """Raises UserError for a record in another form."""
    found = await writer.find(record_address(name, namespace))
    return None if found is None else from_api(found)


async def save_record(writer: ClusterWriter, record: ReleaseRecord) -> None:
    await writer.apply(to_api(record))


async def installed_record(writer: ClusterWriter, name: str = "", namespace: str = "") -> ReleaseRecord:
    """The release of that name, or the only one. Raises UserError if it is not installed."""
    found = [from_api(obj) for obj in await writer.all(_CONFIG_MAPS, RELEASES, namespace)]
    chosen = [one for one in found if not name or one.name == name]
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        others = ", ".join(f"{one.name} in the namespace {one.namespace}" for one in found)
        inside = f" in the namespace {namespace}" if namespace else ""
        what = f"release {name or 'of Shoal'} not found{inside}"
        fix = f"found: {others}" if others else "install it with: shoal install"
        raise UserError(what, where=Where(path="RELEASE"), fix=fix)
    names = ", ".join(f"{one.name} -n {one.namespace}" for one in chosen)
    raise UserError("there are several releases", where=Where(path="RELEASE"), fix=f"name one of: {names}")
