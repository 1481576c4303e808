"""Finds the pods that use a GPU or one of its MIG instances, by the device plugin or by resource claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.agent.health.node_condition import PodUser
from shoal.devices.claimable_gpus import PoolOfNode
from shoal.devices.dcgm_holders import DRA_DRIVER, ContainerHolding
from shoal.devices.device_ids import device_of_replica
from shoal.devices.port import InstalledGpu


def pods_of_gpu(
    uuid: str, gpus: Sequence[InstalledGpu], holdings: Iterable[ContainerHolding], node: str
) -> tuple[PodUser, ...]:
    """`gpus`: of the node, also those that are lost, as they were. `node`: the name of the pool of its claims."""
    wanted = {uuid, *(one.uuid for gpu in gpus if gpu.uuid == uuid for one in gpu.instances)}
    pool = PoolOfNode(node, gpus)

    def uses(one: ContainerHolding) -> bool:
        claimed = (pool.find(each.pool, each.device) for each in one.claimed if each.driver == DRA_DRIVER)
        return any(device_of_replica(device) in wanted for device in one.device_ids) or any(
            found is not None and found.uuid == uuid for found in claimed
        )

    return tuple(dict.fromkeys(PodUser(one.namespace, one.pod) for one in holdings if uses(one)))
