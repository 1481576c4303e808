"""Applies the MIG layout that the label `nvidia.com/mig.config` names.

A layout is looked up in the ConfigMaps (key `config.yaml`, in the order of `config_maps.py`), then among the built-in
ones of the MIG manager. If it is unknown, does not fit, or affects GPUs that pods hold, nothing changes and the state
is `failed`; as the real one, this manager retries only when the label changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shoal.data.gpus import find_model
from shoal.devices.config_maps import in_order
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_config import MigConfigError, parse_mig_config
from shoal.devices.mig_gpus import gpu_of_slot, targets
from shoal.devices.mig_instances import Gpu
from shoal.devices.mig_layout_checks import Problem
from shoal.devices.mig_layouts import MigSpec, Specs, default_layouts
from shoal.devices.mig_profile_names import parse_profile
from shoal.embedded.gpus.node_gpus import Complaint
from shoal.embedded.machines.machine import Machine
from shoal.embedded.machines.mig_cuts import cut

Obj = dict[str, Any]
LABEL = "nvidia.com/mig.config"
STATE = "nvidia.com/mig.config.state"
SOURCE = "shoal.dev/mig-configmap"
"""A key beside a node's labels, with the ConfigMap that a ClusterPolicy names. A change restarts the manager."""
_KEY, _MARK = "config.yaml", "mig-configs"
_NO_MIG = "all-disabled"
"""The layout of nodes without MIG-capable GPUs."""


class MigManager:
    def __init__(self, machine: Machine) -> None:
        self._node, self._installed_gpus = machine.name, machine.gpus
        self.gpus: tuple[Gpu, ...] = tuple(Gpu() for _ in machine.gpus)
        self.config = ""
        self.state = ""
        self._source = ""
        self._unheard = ""
        model = find_model(machine.gpus[0].model) if machine.gpus else None
        self._layout = model.mig if model is not None else ""
        if machine.mig_config and machine.gpu_software == "included":
            self.follow(machine.mig_config, {}, lambda _: False)

    @property
    def is_capable(self) -> bool:
        return bool(self._layout)

    def follow(self, config: str, configs: Mapping[str, Obj], is_used: Callable[[int], bool], source: str = "") -> str:
        """Apply the layout; returns a message about the result, empty if it was applied already."""
        if not self.is_capable:
            return self._unmanaged(config)
        is_again = config == self.config
        if is_again and source == self._source:
            return ""
        before = (self.gpus, self.state)
        self.config, self._source = config, source
        specs = self._find(config, configs)
        problem = specs if isinstance(specs, Problem) else self._apply(specs, is_used)
        self.state = "failed" if problem is not None else "success"
        if is_again and before == (self.gpus, self.state):
            return ""
        if problem is not None:
            return Complaint(f"MIG layout {config} was not applied: {problem.what}; {problem.fix}")
        return f"MIG layout {config} was applied"

    def put(self, index: int, gpu: Gpu) -> None:
        """Another program has changed the GPU."""
        self.gpus = (*self.gpus[:index], gpu, *self.gpus[index + 1 :])

    def _unmanaged(self, config: str) -> str:
        """Handles nodes without MIG-capable GPUs: the GPU operator runs no MIG manager there, so no state is
        written.
        """
        is_reported, self._unheard = config == self._unheard, config
        if is_reported or config == _NO_MIG:
            return ""
        return Complaint(f"MIG layout {config} was not applied: no GPU of this node has MIG; take the label away")

    def _find(self, config: str, configs: Mapping[str, Obj]) -> Specs | Problem:
        complaint = ""
        for name, data in in_order(configs):
            text = data.get(_KEY)
            # Other programs use the same key for configurations of their own.
            if not isinstance(text, str) or _MARK not in text:
                continue
            try:
                found = parse_mig_config(text).get(config)
            except MigConfigError as error:
                complaint = f"ConfigMap {name} cannot be read: {error}"
                continue
            if found is not None:
                return found
        known = default_layouts(self._layout)
        return known.get(config) or Problem(complaint or "no such layout", f"known are {', '.join(known)}")

    def _apply(self, specs: Specs, is_used: Callable[[int], bool]) -> Problem | None:
        present = [gpu_of_slot(slot, gpu) for slot, gpu in zip(self._installed_gpus, self.gpus, strict=True)]
        wanted = targets(specs, present)
        if isinstance(wanted, Problem):
            return wanted
        parts = [name for spec in wanted.values() for name, _ in spec.counts if not parse_profile(name).is_whole]
        if parts:
            what = f"simulated GPUs have one compute instance in each GPU instance, not {parts[0]}"
            return Problem(what, f"use {parse_profile(parts[0]).instance}")
        gpus = list(self.gpus)
        for index, spec in wanted.items():
            gpu = self._gpu(self._installed_gpus[index], spec)
            if gpu != gpus[index] and is_used(index):
                return Problem(f"GPU {index} is in use by another client", "move its pods away and set the label anew")
            gpus[index] = gpu
        self.gpus = tuple(gpus)
        return None

    def _gpu(self, slot: GpuSlot, spec: MigSpec) -> Gpu:
        model = find_model(slot.model)
        facts = model.mig_layout() if model is not None else None
        if not spec.enabled or facts is None:
            return Gpu()
        return Gpu(is_mig=True, cuts=cut(self._node, slot.index, facts, spec.counts, slot.memory_mib) or ())


def is_cut(gpus: Sequence[Gpu]) -> bool:
    return any(gpu.is_mig for gpu in gpus)
