"""Runs the smoke test: a pod with a GPU, which is removed afterwards."""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.kind import NODES
from shoal.install.manifest import Address, address_of
from shoal.install.readiness import blocked_pods
from shoal.install.release import Release
from shoal.install.smoke_test import outcome, resource_to_test, smoke_test_pod
from shoal.install.values.reading import ChartValues
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.stage_waits import EVERY_S, NotReadyError, StageWaits

_STAGE = "smoke test"


class GpuTest:
    def __init__(self, writer: ClusterWriter, report: Callable[[str], None], waits: StageWaits) -> None:
        self._writer = writer
        self._report = report
        self._waits = waits

    async def run(self, release: Release, values: ChartValues) -> None:
        """Without a GPU in the cluster there is nothing to test. Raises NotReadyError."""
        nodes = await self._writer.all(NODES)
        resource = resource_to_test((node.get("status") or {}).get("allocatable") or {} for node in nodes)
        if not resource:
            self._report(f"{_STAGE}: skipped, no node has a GPU yet")
            return
        pod = smoke_test_pod(release, values, resource)
        address = address_of(pod)
        await self._remove_former(address)
        await self._writer.apply(pod)
        try:
            node = await self._until_ended(address)
        finally:
            await self._writer.delete(address)
        self._report(f"{_STAGE}: vectorAdd passed on node {node} with one {resource}")

    async def _until_ended(self, address: Address) -> str:
        """The node on which the pod succeeded."""
        while True:
            pod = await self._writer.find(address)
            if pod is None:
                raise NotReadyError(f"{_STAGE}: {address} was deleted; run shoal install again")
            node = str(pod["spec"].get("nodeName", ""))
            result = outcome(pod)
            if result == "":
                return node
            if result is not None:
                raise NotReadyError(
                    f"{_STAGE}: pod {address.name} failed on node {node}: {result}; see kubectl describe node {node}"
                )
            blocked = next(iter(blocked_pods([pod], _STAGE)), "")
            self._waits.tell(blocked or f"{_STAGE}: waiting for pod {address.name}")
            if self._waits.is_over:
                raise NotReadyError(blocked or f"{_STAGE}: pod {address.name} has not ended in time")
            await self._writer.clock.sleep(EVERY_S)

    async def _remove_former(self, address: Address) -> None:
        """Of an interrupted run."""
        while await self._writer.delete(address) and not self._waits.is_over:
            if await self._writer.find(address) is None:
                return
            await self._writer.clock.sleep(EVERY_S)
