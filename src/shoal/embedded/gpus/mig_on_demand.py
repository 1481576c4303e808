"""Creates MIG instances that the scheduler or a claim asks for on a simulated node, as the agent does on a real one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from shoal.devices.mig_demand import demand_plan
from shoal.devices.mig_gpus import gpu_of_slot
from shoal.devices.mig_instances import Gpu
from shoal.devices.mig_plan import MigStep, PresentGpu
from shoal.devices.mig_port import MigChangeError
from shoal.devices.names import OWN_TOPOLOGY
from shoal.embedded.gpus.node_gpus import Complaint
from shoal.embedded.gpus.simulated_mig import DividedNode, SimulatedMigControl
from shoal.embedded.machines.mig_cuts import new_cut


class _ReportedInstance(msgspec.Struct, frozen=True):
    profile: str = ""
    start: int = 0


class _ReportedGpu(msgspec.Struct, frozen=True):
    index: int = -1
    mig: tuple[_ReportedInstance, ...] | None = None


class _ReportedTopology(msgspec.Struct, frozen=True):
    gpus: tuple[_ReportedGpu, ...] = ()


class MigOnDemand:
    def __init__(self, node: DividedNode) -> None:
        self._node = node
        self._control = SimulatedMigControl(node)
        self._refused: tuple[str, ...] = ()
        self._has_recalled = False

    def recall(self, annotations: Mapping[str, str]) -> None:
        """The instances that the node had before this process started: pods may hold them."""
        if self._has_recalled:
            return
        self._has_recalled = True
        try:
            reported = msgspec.json.decode(annotations.get(OWN_TOPOLOGY, "{}"), type=_ReportedTopology)
        except msgspec.DecodeError:
            return
        for one in reported.gpus:
            if one.mig is not None and 0 <= one.index < len(self._node.machine.gpus):
                self._recall(one)

    def follow(self, settings: Mapping[str, str]) -> list[str]:
        """What was created or refused, in words; nothing if nothing changed."""
        plan = demand_plan(settings, self.present())
        created: list[str] = []
        failure = self.carry_out(plan.steps, created)
        said: list[str] = [Complaint(failure)] if failure else []
        if created:
            said.insert(0, f"MIG on demand: {'; '.join(created)}")
        if plan.refusals != self._refused:
            self._refused = plan.refusals
            said += [Complaint(f"MIG on demand: {one}") for one in plan.refusals]
        return said

    def carry_out(self, steps: Sequence[MigStep], done: list[str] | None = None) -> str:
        """The failure that ended it, empty without one; `done` gets what was done, in words."""
        for step in steps:
            try:
                if step.kind == "mode":
                    self._control.set_mode(step.uuid, enabled=step.enabled)
                elif step.kind == "destroy":
                    self._control.destroy(step.uuid, step.number)
                else:
                    self._control.create(step.uuid, step.profile, step.start, step.compute)
            except MigChangeError as error:
                return f"GPU {step.gpu}: {error}"
            if done is not None:
                done.append(str(step))
        return ""

    def present(self, held: Collection[str] = ()) -> list[PresentGpu]:
        """`held`: UUIDs of GPUs and instances that are in use besides those of pods."""
        node = self._node
        found = []
        for slot, gpu in zip(node.machine.gpus, node.gpus, strict=True):
            lost = node.xid(slot.index)
            instances = () if lost is not None and lost.is_lost else self._control.instances(slot.uuid)
            used = frozenset(cut.instance for cut in gpu.cuts if cut.uuid in held or node.is_instance_used(cut.uuid))
            is_used = bool(used) or slot.uuid in held or node.is_used(slot.index)
            found.append(PresentGpu(gpu_of_slot(slot, gpu), slot.uuid, instances, used, is_used))
        return found

    def _recall(self, reported: _ReportedGpu) -> None:
        slot = self._node.machine.gpus[reported.index]
        facts = gpu_of_slot(slot, Gpu()).facts
        if facts is None:
            return
        places = [
            (profile.name, one.start)
            for one in reported.mig or ()
            if (profile := facts.profile(one.profile)) is not None and one.start in profile.starts
        ]
        name = self._node.machine.name
        cuts = tuple(new_cut(name, slot.index, facts, place, slot.memory_mib) for place in places)
        self._node.change_gpu(slot.index, Gpu(is_mig=True, cuts=cuts))
