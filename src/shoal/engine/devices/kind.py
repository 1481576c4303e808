"""Defines the protocol of the kinds of device requests."""

from __future__ import annotations

from typing import Protocol, TypeVar

from shoal.engine.device_demand import DeviceGrant
from shoal.engine.devices.columns import DeviceColumns, Ints
from shoal.engine.devices.node_devices import NodeDeviceState

D_contra = TypeVar("D_contra", contravariant=True)

DevicePositions = tuple[tuple[int, int], ...]
"""Devices that a pod holds by its annotation, and on each the first MIG slice, if there is one."""


class DeviceKind(Protocol[D_contra]):
    """One kind of demand. A node can host it if the record and, where `asked` is not zero, the capacity say so."""

    def least(self, demand: D_contra, /) -> dict[int, int]:
        """Column of the record -> least amount without which a node cannot host the demand."""
        ...

    def charged(self, demand: D_contra, /) -> dict[int, int]:
        """Column of the record -> amount the demand takes, for columns that add up on every node alike."""
        ...

    def tightest(self, bench: NodeDeviceState, demand: D_contra, /) -> DeviceGrant | None:
        """The legal grant that leaves least behind on its devices, the lowest device of equals."""
        ...

    def forced(self, bench: NodeDeviceState, demand: D_contra, /) -> DeviceGrant:
        """A grant for a pod that already runs there although nothing fits: the emptiest devices."""
        ...

    def held(self, bench: NodeDeviceState, demand: D_contra, positions: DevicePositions, /) -> DeviceGrant | None:
        """The grant of a pod that holds these devices by its annotation; None when that cannot be."""
        ...

    def asked(self, demand: D_contra, /) -> int:
        """How much of `capacity` a node must have; zero when the record alone is exact."""
        ...

    def capacity(self, columns: DeviceColumns, demand: D_contra, /) -> Ints:
        """How much each row has."""
        ...

    def most(self, columns: DeviceColumns, demand: D_contra, /) -> Ints:
        """How much each row would have, were nothing taken."""
        ...

    def lack(self, demand: D_contra, /) -> tuple[str, str]:
        """What a node lacks ("a GPU with ... free"), and the unit of `capacity`."""
        ...
