"""Compares the GPUs of a node with a MIG layout, and lists the steps by which mig-parted would apply it.

The steps are shown beside Shoal's own plan, which keeps the instances that stay. mig-parted changes the mode of all
GPUs of the layout if that of one differs, and replaces all instances of a GPU if one differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, prod

import msgspec

from shoal.devices.mig_gpus import MigGpu, is_passed_over, selected
from shoal.devices.mig_layout_checks import Problem, counts_problem
from shoal.devices.mig_layouts import Counts, Specs
from shoal.devices.mig_profile_names import flattened


class MigPartedSteps(msgspec.Struct, frozen=True):
    steps: tuple[str, ...]
    after: tuple[MigGpu, ...]
    problem: Problem | None = None


def mode_matches(specs: Specs, gpus: Sequence[MigGpu]) -> bool:
    """Whether each GPU that an entry concerns has its MIG mode."""
    return all(spec.enabled == (gpu.is_capable and gpu.is_mig) for spec, gpu in selected(specs, gpus))


def layout_matches(specs: Specs, gpus: Sequence[MigGpu]) -> bool:
    """Whether every GPU of the node has the instances of its last entry; a GPU without an entry does not match."""
    matched: dict[int, bool] = {}
    for spec, gpu in selected(specs, gpus):
        if not gpu.is_capable or not gpu.is_mig:
            if spec.enabled:
                return False
            matched[gpu.index] = True
        else:
            matched[gpu.index] = gpu.counts == spec.counts
    return len(matched) == len(gpus) and all(matched.values())


def attempts(counts: Counts) -> int:
    """The different orders in which the instances can be created: mig-parted tries all of them."""
    numbers = [count for _, count in counts]
    return factorial(sum(numbers)) // prod(map(factorial, numbers))


def mig_parted_steps(specs: Specs, gpus: Sequence[MigGpu], *, mode_only: bool = False) -> MigPartedSteps:
    run = _Run(gpus)
    run.steps.append("hook apply-start")
    problem = run.change_mode(specs)
    if problem is None and not mode_only:
        problem = run.change_layout(specs)
    run.steps.append("hook apply-exit")
    return MigPartedSteps(tuple(run.steps), run.gpus, problem)


class _Run:
    def __init__(self, gpus: Sequence[MigGpu]) -> None:
        self._gpus = {gpu.index: gpu for gpu in gpus}
        self._pending: dict[int, bool] = {}
        self.steps: list[str] = []

    @property
    def gpus(self) -> tuple[MigGpu, ...]:
        return tuple(self._gpus.values())

    def change_mode(self, specs: Specs) -> Problem | None:
        if mode_matches(specs, self.gpus):
            return None
        self.steps.append("hook pre-apply-mode")
        for spec, first in selected(specs, self.gpus):
            gpu = self._gpus[first.index]
            if is_passed_over(spec, gpu):
                continue
            if not gpu.is_capable:
                return Problem("cannot set MIG mode on non MIG-capable GPU", f"leave GPU {gpu.index} out")
            if gpu.is_mig:
                self.steps.append(f"clear {gpu.index}")
                gpu = self._set(gpu, counts=())
            self.steps.append(f"mode {gpu.index} {'enabled' if spec.enabled else 'disabled'}")
            self._pending.pop(gpu.index, None)
            if spec.enabled != gpu.is_mig and gpu.needs_reset:
                self._pending[gpu.index] = spec.enabled
            else:
                self._set(gpu, is_mig=spec.enabled)
        if self._pending:
            self.steps.append("reset all")
            for index, is_mig in self._pending.items():
                self._set(self._gpus[index], is_mig=is_mig)
            self._pending.clear()
        return None

    def change_layout(self, specs: Specs) -> Problem | None:
        if layout_matches(specs, self.gpus):
            return None
        self.steps.append("hook pre-apply-config")
        for spec, first in selected(specs, self.gpus):
            gpu = self._gpus[first.index]
            if is_passed_over(spec, gpu):
                continue
            if not gpu.is_capable:
                return Problem("cannot set MIG config on non MIG-capable GPU", f"leave GPU {gpu.index} out")
            if spec.enabled and not gpu.is_mig:
                return Problem("unable to apply MIG config with MIG mode disabled", f"enable MIG on GPU {gpu.index}")
            if not spec.enabled or gpu.counts == spec.counts:
                continue
            self.steps.append(f"instances {gpu.index} {','.join(flattened(spec.counts)) or 'none'}")
            problem = counts_problem(spec.counts, gpu.facts) if gpu.facts is not None else None
            if problem is not None:
                self._set(gpu, counts=())
                return problem
            self._set(gpu, counts=spec.counts)
        return None

    def _set(self, gpu: MigGpu, *, is_mig: bool | None = None, counts: Counts | None = None) -> MigGpu:
        mode = gpu.is_mig if is_mig is None else is_mig
        present = gpu.counts if counts is None else counts
        changed = msgspec.structs.replace(gpu, is_mig=mode, counts=present if mode else ())
        self._gpus[gpu.index] = changed
        return changed
