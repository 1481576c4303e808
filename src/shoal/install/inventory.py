"""The record of a release in the cluster: its values, its state, the objects that belong to it, its former revision.

It is a ConfigMap that is written before the first object, with all objects that will be applied, so that an interrupted
installation can be completed and removed. Objects are compressed: with the definitions left out, two revisions take
about 20 kB.

Rejected: a Secret per revision as helm has it. Nothing in it is secret, and one object shows the state to `kubectl`.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from shoal.install.manifest import Address, address_of, stays_with_data
from shoal.install.release import INSTANCE, Release
from shoal.units.errors import UserError, Where

Obj = dict[str, Any]
T = TypeVar("T")
COMPONENT = "release"
_PREFIX = "shoal-release-"
_LARGEST_BYTES = 8 * 1024 * 1024
"""Of the objects of a revision, uncompressed."""
INSTALLING, DEPLOYED, FAILED, UPGRADING, REMOVING = "installing", "deployed", "failed", "upgrading", "uninstalling"
ROLLING_BACK = "rolling back"
"""The current revision is one that was ready before, and is applied again."""


class Revision(msgspec.Struct, frozen=True):
    number: int = 1
    version: str = ""
    values: Obj = {}
    """As the user gave them."""
    objects: tuple[Obj, ...] = ()
    """Without definitions, which are not rolled back."""


class FailedRevision(msgspec.Struct, frozen=True):
    """A revision that was not ready in time."""

    version: str = ""
    values: Obj = {}
    """As the user gave them."""
    reason: str = ""


class ReleaseRecord(msgspec.Struct, frozen=True):
    name: str
    namespace: str
    state: str = INSTALLING
    created_namespace: bool = False
    has_other_process: bool = False
    """Whether a process of Shoal ran in the cluster before, such as `shoal run` on another machine: what such processes
    write while they run stays at the removal."""
    had_gpu_labels: bool = True
    """Whether nodes had labels of GPUs before the installation."""
    inventory: tuple[Address, ...] = ()
    """In the order in which they are applied, of this and of the former revision."""
    current: Revision = Revision()
    former: Revision | None = None
    """The revision that `--rollback` applies."""
    failed: FailedRevision | None = None
    """The last one that failed, until another one is ready."""

    @property
    def release(self) -> Release:
        return Release(self.name, self.namespace, self.current.version)

    def with_state(self, state: str) -> ReleaseRecord:
        return msgspec.structs.replace(self, state=state)


def config_map_name(release_name: str) -> str:
    return _PREFIX + release_name


def to_api(record: ReleaseRecord) -> Obj:
    release = record.release
    meta = {"name": config_map_name(record.name), "namespace": record.namespace, "labels": release.labels(COMPONENT)}
    data = {
        "state": record.state,
        "revision": str(record.current.number),
        "version": record.current.version,
        "createdNamespace": "true" if record.created_namespace else "false",
        "hasOtherProcess": "true" if record.has_other_process else "false",
        "hadGpuLabels": "true" if record.had_gpu_labels else "false",
        "inventory": "".join(f"{' '.join(part or '-' for part in one)}\n" for one in record.inventory),
    }
    packed = {"current": _packed(record.current)}
    if record.former is not None:
        packed["former"] = _packed(record.former)
    if record.failed is not None:
        data["failed"] = record.failed.reason
        packed["failedRevision"] = _packed(record.failed)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data, "binaryData": packed}


def from_api(config_map: Obj) -> ReleaseRecord:
    """Raises UserError for a ConfigMap that is none of this form."""
    meta, data = config_map["metadata"], config_map.get("data") or {}
    where = Where(obj=f"ConfigMap {meta.get('namespace', '')}/{meta['name']}")
    packed = config_map.get("binaryData") or {}
    try:
        inventory = tuple(_address(line) for line in data["inventory"].splitlines())
        return ReleaseRecord(
            (meta.get("labels") or {})[INSTANCE],
            meta["namespace"],
            data["state"],
            data.get("createdNamespace") == "true",
            data.get("hasOtherProcess") == "true",
            data.get("hadGpuLabels") != "false",
            inventory,
            _unpacked(packed["current"], Revision),
            _unpacked(packed["former"], Revision) if "former" in packed else None,
            _unpacked(packed["failedRevision"], FailedRevision) if "failedRevision" in packed else None,
        )
    except (KeyError, ValueError, zlib.error, msgspec.MsgspecError) as error:
        what = f"is not the record of a release: {error}"
        raise UserError(what, where=where, fix="delete it; then shoal install completes the installation") from None


def _address(line: str) -> Address:
    parts = ["" if part == "-" else part for part in line.split(" ")]
    if len(parts) != 4:
        raise ValueError("a line of the inventory does not have four parts")
    return Address(*parts)


def _packed(revision: Revision | FailedRevision) -> str:
    return base64.b64encode(zlib.compress(msgspec.json.encode(revision), 9)).decode()


def _unpacked(text: str, kind: type[T]) -> T:
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(base64.b64decode(text, validate=True), _LARGEST_BYTES)
    return msgspec.json.decode(data, type=kind)


class InstallPlan(msgspec.Struct, frozen=True):
    """What an installation does with each object."""

    applied: tuple[Obj, ...] = ()
    kept: tuple[Address, ...] = ()
    """They exist and belong to the cluster: they stay as they are, also after the removal of the release."""
    foreign: tuple[Address, ...] = ()
    """They exist and belong to another program or user, so the installation must not change them."""
    removed: tuple[Address, ...] = ()
    """Of the former revision, and not of the new one."""


_SHARED = ("Namespace", "CustomResourceDefinition", "ClusterPolicy", "NVIDIADriver")


def plan(
    release: Release,
    desired: Sequence[Obj],
    present: Mapping[Address, Mapping[str, str]],
    recorded: Iterable[Address] = (),
    *,
    takes_ownership: bool = False,
) -> InstallPlan:
    """`present`: the labels of the existing objects among the desired and recorded ones."""
    applied: list[Obj] = []
    kept: list[Address] = []
    foreign: list[Address] = []
    for obj in desired:
        address = address_of(obj)
        labels = present.get(address)
        if labels is None or release.owns(labels):
            applied.append(obj)
        elif address.kind in _SHARED:
            kept.append(address)
        elif takes_ownership:
            applied.append(obj)
        else:
            foreign.append(address)
    wanted = {address_of(obj) for obj in desired}
    removed = [
        one
        for one in recorded
        if one not in wanted and not stays_with_data(one.kind) and release.owns(present.get(one, {}))
    ]
    return InstallPlan(tuple(applied), tuple(kept), tuple(foreign), tuple(reversed(removed)))
