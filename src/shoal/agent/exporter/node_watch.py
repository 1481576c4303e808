"""Reads a node's GPUs, Xid errors and pods in threads, and passes what they report to the exporter's state.

Each GPU has a thread of its own, and so have the list of GPUs, the Xid errors and the kubelet, because any of these
calls may block for long. The threads do not keep the process from ending.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from shoal.agent.exporter.gpu_sampler import GpuSampler, TakenReading
from shoal.agent.exporter.node_state import NodeState
from shoal.agent.exporter.pod_devices import PodDevices
from shoal.agent.exporter.pod_uses import pod_uses
from shoal.agent.exporter.process_owners import ProcessOwners
from shoal.agent.exporter.settings import ExporterSettings
from shoal.devices.dcgm_holders import ContainerHolding
from shoal.devices.dcgm_jobs import Jobs
from shoal.devices.port import GpuDriver
from shoal.units.errors import ShoalError

if TYPE_CHECKING:
    from shoal.agent.kubelet.pod_metadata import PodMetadata

_log = logging.getLogger("shoal.agent.exporter")
_XID_WAIT_S = 1.0


class Sources(msgspec.Struct, frozen=True):
    """Where the metrics come from, besides the driver."""

    pods: PodDevices | None = None
    """None: the kubelet is not asked."""
    owners: ProcessOwners | None = None
    """None: the use of shared GPUs is not split by pod."""
    metadata: Callable[[str, str], PodMetadata | None] | None = None
    """The UID and labels of a pod by its namespace and name; None: without labels."""
    jobs: Callable[[], Jobs] | None = None
    has_xids: bool = True
    """Whether this reads the driver's Xid errors. A driver reports each once: another reader must pass them on."""


class NodeWatch:
    def __init__(
        self,
        driver: GpuDriver,
        state: NodeState,
        settings: ExporterSettings,
        sources: Sources,
        seconds: Callable[[], float] = monotonic,
    ) -> None:
        self._driver, self._state, self._settings = driver, state, settings
        self._sources, self._seconds = sources, seconds
        self._stop = Event()
        self._threads: list[Thread] = []
        self._samplers: dict[str, GpuSampler] = {}
        self._failures: dict[str, str] = {}
        self._has_gpus, self._has_pods = Event(), Event()

    def start(self) -> None:
        self._start("gpus", partial(self._repeat, "the list of GPUs", self.list_gpus, self._settings.listing_s))
        if self._sources.has_xids:
            self._start("xids", self._watch_xids)
        if self._sources.pods is not None:
            self._start("pods", partial(self._repeat, "the kubelet", self.list_pods, self._settings.interval_s))
        if self._sources.jobs is not None:
            self._start("jobs", partial(self._repeat, "the files of jobs", self.read_jobs, self._settings.interval_s))

    def wait_for_readings(self, count: int, timeout_s: float) -> None:
        """Return when every GPU was read that often, and the kubelet once, or when the time is over."""
        end_s = self._seconds() + timeout_s
        self._has_gpus.wait(timeout_s)
        if self._sources.pods is not None:
            self._has_pods.wait(max(end_s - self._seconds(), 0.0))
        for sampler in list(self._samplers.values()):
            sampler.wait_for(count, max(end_s - self._seconds(), 0.0))

    def stop(self) -> None:
        self._stop.set()

    # What the threads repeat. Each returns when its source has answered.

    def list_gpus(self) -> None:
        listed = self._driver.gpus()
        self._state.list_gpus(listed)
        for gpu in listed.gpus:
            if gpu.uuid not in self._samplers:
                sampler = GpuSampler(self._driver, gpu.uuid, self._seconds, self.take)
                self._samplers[gpu.uuid] = sampler
                self._start(gpu.uuid, partial(sampler.run, self._stop, self._settings.interval_s))
        self._has_gpus.set()

    def list_pods(self) -> None:
        if self._sources.pods is None:
            return
        try:
            holdings = self._sources.pods.holdings()
        except ShoalError:
            self._state.set_holdings(None)
            raise
        else:
            self._state.set_holdings([self._with_metadata(one) for one in holdings])
        finally:
            self._has_pods.set()

    def read_jobs(self) -> None:
        if self._sources.jobs is not None:
            self._state.set_jobs(self._sources.jobs())

    def next_xid(self) -> bool:
        """Whether there was an Xid error."""
        event = self._driver.next_xid(_XID_WAIT_S)
        if event is not None:
            self._state.add_xid(event, self._seconds())
        return event is not None

    def _watch_xids(self) -> None:
        while not self._stop.is_set():
            before_s = self._seconds()
            if not self._attempt("Xid errors", self.next_xid):
                # Drivers that do not wait answer at once.
                self._stop.wait(max(_XID_WAIT_S - (self._seconds() - before_s), 0.0))

    def _repeat(self, what: str, call: Callable[[], object], interval_s: float) -> None:
        self._attempt(what, call)
        while not self._stop.wait(interval_s):
            self._attempt(what, call)

    def _attempt(self, what: str, call: Callable[[], object]) -> bool:
        """Whether it returned something true. A failure is logged once until it changes."""
        try:
            found = call()
        except Exception as error:  # noqa: BLE001 - the agent continues with what it can read
            self._complain(what, str(error))
            return False
        self._failures.pop(what, None)
        return bool(found)

    def _complain(self, what: str, words: str) -> None:
        if self._failures.get(what) != words:
            _log.warning("%s: %s", what, words)
        self._failures[what] = words

    def take(self, uuid: str, taken: TakenReading) -> None:
        """Keep a reading, with the parts of the pods whose processes are in it."""
        gpu, owners = self._state.gpu(uuid), self._sources.owners
        if gpu is None or owners is None or taken.readings is None:
            self._state.add_reading(uuid, taken, None)
            return
        self._state.add_reading(uuid, taken, pod_uses(gpu, taken.readings, owners.pod_of))

    def _with_metadata(self, holding: ContainerHolding) -> ContainerHolding:
        """With the UID and the labels of its pod, as far as they are wanted and known."""
        owners, options = self._sources.owners, self._settings.holders
        found: PodMetadata | None = None
        if self._sources.metadata is not None:
            try:
                found = self._sources.metadata(holding.namespace, holding.pod)
            except ShoalError as error:
                self._complain("the API server", str(error))
        if found is not None:
            return msgspec.structs.replace(holding, uid=found.uid, labels=found.labels)
        if options.has_pod_uid and owners is not None:
            return msgspec.structs.replace(holding, uid=owners.uid_of(holding.namespace, holding.pod))
        return holding

    def _start(self, name: str, run: Callable[[], object]) -> None:
        thread = Thread(target=run, name=f"exporter {name}", daemon=True)
        self._threads.append(thread)
        thread.start()
