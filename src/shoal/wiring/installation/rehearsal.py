"""Rehearses an upgrade on a copy of the cluster, and tells what it would change or why it would fail.

The same code that upgrades a cluster runs on the copy, so that the API server's checks, conversions and defaults are
part of the rehearsal. Without kubelets nothing gets ready there: images, nodes and probes are not rehearsed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import msgspec

from shoal.client.clock import Clock
from shoal.client.refusals import RefusedError
from shoal.install.manifest import Address
from shoal.install.object_changes import ObjectChange, object_changes
from shoal.install.release import Release
from shoal.units.errors import ConflictError, TemporaryError
from shoal.wiring.installation.applying import Installer, Patience
from shoal.wiring.installation.cluster_copy import ClusterCopy, cluster_copy
from shoal.wiring.installation.cluster_writer import ClusterWriter

Obj = dict[str, Any]
Act = Callable[[ClusterWriter, Installer], Awaitable[object]]


class Rehearsal(msgspec.Struct, frozen=True):
    copied: Mapping[str, int]
    """How many objects, by resource."""
    not_copied: tuple[str, ...]
    changes: tuple[ObjectChange, ...]
    failures: tuple[str, ...]
    """Empty: the upgrade would be carried out."""
    told: tuple[str, ...] = ()
    """What the upgrade reported on the copy."""

    @property
    def replaced(self) -> tuple[Address, ...]:
        """Whose pods are replaced, because their template changes."""
        return tuple(
            one.address
            for one in self.changes
            if one.sign == "~" and any(field.path.startswith("spec.template") for field in one.fields)
        )


async def rehearse(source: ClusterWriter, clock: Clock, release: Release, act: Act) -> Rehearsal:
    """`act` upgrades with the writer and the installer that it gets, which are those of the copy."""
    told: list[str] = []
    async with cluster_copy(source, clock, release) as copied:
        before, custom = await copied.objects(), await copied.custom_objects()
        failures: list[str] = []
        try:
            await act(copied.writer, Installer(copied.writer, told.append, Patience(waits=False)))
        except (RefusedError, ConflictError, TemporaryError) as error:
            failures.append(str(error))
        after = await copied.objects()
        failures += [one async for one in _lost(copied, custom, release)]
        changes = tuple(object_changes(before, after))
        return Rehearsal(dict(copied.counts), tuple(copied.refused), changes, tuple(failures), tuple(told))


async def _lost(copied: ClusterCopy, custom: Mapping[Address, Obj], release: Release) -> AsyncIterator[str]:
    """Custom resources of users that are not readable any more in a version, or not with all their fields."""
    before = {at: obj for at, obj in custom.items() if not release.owns(obj["metadata"].get("labels") or {})}
    try:
        after = await copied.custom_objects()
    except (RefusedError, TemporaryError) as error:
        yield f"custom resources cannot be read: {error}"
        return
    for one in object_changes(before, {address: after[address] for address in before if address in after}):
        if one.sign == "-":
            yield f"{one.address} would not be readable in {one.address.api_version}"
        for field in one.lost:
            yield f"{one.address} would lose {field.path} in {one.address.api_version}"
