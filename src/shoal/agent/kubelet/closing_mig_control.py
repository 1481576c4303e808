"""Changes MIG layouts of a machine whose kubelet is in the same process.

Guarantee: what a pod has is not changed, and no pod gets what is being changed: the GPU or instance is closed for new
pods first, and reopened when the driver has listed the new layout. Rejected: to rely on the driver's refusal, because a
pod may have a GPU on which no program runs yet.
"""

from __future__ import annotations

from shoal.agent.kubelet.gpus import NodeGpus
from shoal.devices.mig_port import GpuInstance, MigChangeError, MigControl


class ClosingMigControl:
    """Implements MigControl."""

    def __init__(self, control: MigControl, gpus: NodeGpus) -> None:
        self._control, self._gpus = control, gpus

    def instances(self, uuid: str) -> tuple[GpuInstance, ...]:
        return self._control.instances(uuid)

    def set_mode(self, uuid: str, *, enabled: bool) -> bool:
        if not self._gpus.close(uuid):
            raise MigChangeError("in-use", "cannot change the MIG mode: a pod has the GPU or a part of it")
        return self._control.set_mode(uuid, enabled=enabled)

    def create(self, uuid: str, profile: str, start: int, compute: tuple[int, ...]) -> None:
        self._control.create(uuid, profile, start, compute)

    def destroy(self, uuid: str, number: int) -> None:
        if not self._gpus.close(uuid, number):
            raise MigChangeError("in-use", f"cannot destroy instance {number}: a pod has it")
        self._control.destroy(uuid, number)
