"""Reads the MIG layout of this node, and carries out the steps of a plan.

Guarantees: a step that fails ends the change, and the steps before it are undone as far as the driver allows.
Nothing is remembered between calls, so a process that was killed continues by a new plan from the present layout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from shoal.agent.mig.held_devices import NOTHING_IN_USE
from shoal.data.mig import layout_of_product
from shoal.devices.mig_gpus import MigGpu, changes_mode_by_reset
from shoal.devices.mig_layouts import Counts, MigOffer, Specs, generated_layouts
from shoal.devices.mig_plan import MigPlan, MigStep, PresentGpu
from shoal.devices.mig_port import GpuInstance, MigChangeError, MigControl
from shoal.devices.mig_profile_names import parse_profile
from shoal.devices.names import GPU, MIG_PREFIX
from shoal.devices.pci_ids import PciId, parse_pci_id
from shoal.devices.port import GpuDriver, InstalledGpu, LostGpu, UnknownGpuError
from shoal.devices.product_names import product_of_device
from shoal.units.errors import TemporaryError

_VENDOR = 0x10DE
_RETRY_S = 5.0


class Change(msgspec.Struct, frozen=True):
    """The result of a change."""

    done: tuple[MigStep, ...]
    resets: tuple[int, ...] = ()
    """GPUs whose mode is in effect after a reset only; what needs the mode has not been done."""
    failure: str = ""
    undone: bool = True
    """After a failure: whether the former layout is there again."""


class NodeMig:
    def __init__(self, driver: GpuDriver, control: MigControl) -> None:
        self._driver, self._control = driver, control
        self.held = NOTHING_IN_USE
        """The devices that pods of the node hold, also those without a process at present."""

    def present(self) -> tuple[PresentGpu, ...]:
        """Raises `TemporaryError` if the instances of a GPU cannot be read: a plan must not take them for absent."""
        gpus = self._driver.gpus().gpus
        # The strategy `single` advertises instances as whole GPUs, but only on nodes whose GPUs are all in MIG mode.
        is_single = all(gpu.is_mig for gpu in gpus)
        return tuple(self._present(gpu, is_single=is_single) for gpu in gpus)

    def layouts(self) -> dict[str, Specs]:
        """The layouts that are generated for the GPUs of this node."""
        offers: dict[str, MigOffer] = {}
        for gpu in self._driver.gpus().gpus:
            found = _mig_gpu(gpu, ())
            if found.is_capable and found.facts is not None:
                kind = str(found.pci[0]) if found.pci else found.name
                profiles = tuple((one.name, one.max) for one in found.facts.profiles)
                offers.setdefault(kind, MigOffer(kind, profiles))
        return generated_layouts(list(offers.values()))

    def apply(self, plan: MigPlan) -> Change:
        done: list[MigStep] = []
        waiting: set[int] = set()
        for step in plan.steps:
            if step.gpu in waiting:
                continue
            try:
                is_done = self._do(step)
            except (MigChangeError, UnknownGpuError) as error:
                return Change(tuple(done), failure=f"GPU {step.gpu}: {error}", undone=self._undo(done))
            if is_done:
                done.append(step)
            else:
                waiting.add(step.gpu)
        return Change(tuple(done), tuple(sorted(waiting)))

    def _do(self, step: MigStep) -> bool:
        if step.kind == "mode":
            return self._control.set_mode(step.uuid, enabled=step.enabled)
        if step.kind == "destroy":
            self._control.destroy(step.uuid, step.number)
        else:
            self._control.create(step.uuid, step.profile, step.start, step.compute)
        return True

    def _undo(self, done: Sequence[MigStep]) -> bool:
        """Whether all steps were undone."""
        complete = True
        for step in reversed(done):
            try:
                if step.kind == "mode":
                    self._control.set_mode(step.uuid, enabled=not step.enabled)
                elif step.kind == "destroy":
                    self._control.create(step.uuid, step.profile, step.start, step.compute)
                else:
                    for one in self._control.instances(step.uuid):
                        if (one.profile, one.start) == (step.profile, step.start):
                            self._control.destroy(step.uuid, one.number)
            except (MigChangeError, UnknownGpuError):
                complete = False
        return complete

    def _present(self, gpu: InstalledGpu, *, is_single: bool) -> PresentGpu:
        held = self.held
        try:
            instances = self._control.instances(gpu.uuid) if gpu.is_mig else ()
            readings = self._driver.read(gpu.uuid)
        except (MigChangeError, UnknownGpuError) as error:
            raise TemporaryError(f"the MIG instances of GPU {gpu.index} cannot be read: {error}", _RETRY_S) from error
        used = {one.instance for one in gpu.instances if one.uuid in held.ids and one.instance is not None}
        used |= {one.number for one in instances if _resource(one.profile) in held.resources}
        processes = () if isinstance(readings, LostGpu) else readings.processes or ()
        used |= {one.instance for one in processes if one.instance is not None}
        if any(one.instance is None for one in processes) or (is_single and GPU in held.resources):
            used |= {one.number for one in instances}
        return PresentGpu(
            gpu=_mig_gpu(gpu, instances),
            uuid=gpu.uuid,
            instances=instances,
            used=frozenset(used),
            is_used=bool(used or processes or gpu.uuid in held.ids or (not gpu.is_mig and GPU in held.resources)),
        )


def _mig_gpu(gpu: InstalledGpu, instances: Sequence[GpuInstance]) -> MigGpu:
    product = product_of_device(gpu.name)
    facts = layout_of_product(product.removeprefix("NVIDIA-"))
    own = parse_pci_id(gpu.pci_id) if gpu.pci_id else None
    known = tuple(PciId(int(device, 16) << 16 | _VENDOR) for device in facts.pci) if facts is not None else ()
    return MigGpu(
        index=gpu.index,
        pci=(own,) if own is not None else known,
        facts=facts,
        is_capable=gpu.is_mig is not None,
        is_mig=bool(gpu.is_mig),
        counts=counts_of(instances),
        needs_reset=changes_mode_by_reset(gpu.compute_capability),
        name=product,
    )


def _resource(profile: str) -> str:
    return MIG_PREFIX + profile.replace("+", ".")


def counts_of(instances: Sequence[GpuInstance]) -> Counts:
    """A GPU instance without compute instances is listed without a size, so that no layout has it."""
    found: Counter[str] = Counter()
    for one in instances:
        slices = parse_profile(one.profile).slices if one.profile else 0
        found.update(one.profile if size == slices else f"{size}c.{one.profile}" for size in one.compute or (0,))
    return tuple(sorted(found.items()))
