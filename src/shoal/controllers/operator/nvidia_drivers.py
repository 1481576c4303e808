"""Reads the NVIDIADrivers, and writes their statuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import NVIDIA_DRIVERS
from shoal.client.item import Item, Obj
from shoal.client.owner_reference import controlled_by
from shoal.controllers.operator.policies import Policies
from shoal.operator.components.build import Building
from shoal.operator.components.component import DRIVER
from shoal.operator.components.desired import DesiredState
from shoal.operator.components.facts import OperatorNode
from shoal.operator.components.nvidia_drivers import DriverAssignment, assign_drivers
from shoal.operator.policy.nvidia_driver import NvidiaDriver, read_nvidia_driver
from shoal.operator.progress.policy_status import DaemonSetProgress, PolicyStatus, state_progress
from shoal.units.errors import UserError

_OFF = "spec.driver.useNvidiaDriverCRD of the ClusterPolicy is false: the driver of the ClusterPolicy is installed"


class AssignedDrivers(msgspec.Struct):
    items: dict[str, Item]
    assignment: DriverAssignment = DriverAssignment()
    faults: dict[str, tuple[str, str]] = {}
    """Reason and message of each NVIDIADriver that cannot be applied."""
    kept: bool = False
    """Whether DaemonSets of drivers must not be deleted, because an NVIDIADriver is wrong."""
    warnings: dict[str, tuple[str, ...]] = {}

    @property
    def pools(self) -> dict[str, str]:
        return self.assignment.pools

    def states(self) -> list[tuple[DesiredState, Obj]]:
        """With the owner of the objects."""
        found = []
        for name, sets in self.assignment.daemon_sets.items():
            item = self.items[name]
            found.append((DesiredState(DRIVER.state, sets, DRIVER), controlled_by(NVIDIA_DRIVERS, name, item.uid)))
        if self.kept:
            words = "; ".join(f"NVIDIADriver {name}: {words}" for name, (_, words) in self.faults.items())
            found.append((DesiredState(DRIVER.state, (), DRIVER, words), {}))
        return found


class NvidiaDrivers:
    """The caller follows the kind, if the server has it."""

    def __init__(self, context: Context, policies: Policies) -> None:
        self._context = context
        self._policies = policies

    def assigned(self, build: Building, nodes: Sequence[OperatorNode]) -> AssignedDrivers:
        items = {one.name: one for one in self._context.informers.known(NVIDIA_DRIVERS) or ()}
        if not build.spec.driver.enabled or not build.spec.driver.use_nvidia_driver_crd:
            return AssignedDrivers(items, faults=dict.fromkeys(items, ("PrerequisiteNotMet", _OFF)))
        read: list[NvidiaDriver] = []
        faults: dict[str, tuple[str, str]] = {}
        for name, item in sorted(items.items()):
            obj = item.obj()
            try:
                read.append(read_nvidia_driver(name, obj["metadata"].get("creationTimestamp", ""), obj.get("spec")))
            except UserError as error:
                faults[name] = ("ReconcileFailed", str(error))
        found = assign_drivers(build, read, nodes)
        kept = bool(faults) or any(name not in found.daemon_sets for name in found.faults)
        warnings = {one.name: one.warnings for one in read}
        return AssignedDrivers(items, found, faults | found.faults, kept, warnings)

    async def report(self, assigned: AssignedDrivers, sets: Mapping[str, DaemonSetProgress]) -> None:
        for name, item in assigned.items.items():
            if name in assigned.faults:
                reason, words = assigned.faults[name]
                status = PolicyStatus("notReady", reason, words)
            else:
                own = DesiredState(DRIVER.state, assigned.assignment.daemon_sets.get(name, ()), DRIVER)
                waiting = [one.message for one in state_progress([own], sets) if not one.is_ready]
                status = (
                    PolicyStatus("notReady", "DriverNotReady", "; ".join(waiting))
                    if waiting
                    else PolicyStatus("ready", "Reconciled", f"{len(own.objects)} DaemonSets are ready")
                )
            self._policies.warn(NVIDIA_DRIVERS, item, "NoEffect", assigned.warnings.get(name, ()))
            await self._policies.write(NVIDIA_DRIVERS, item, status)
