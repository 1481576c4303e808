"""Holds what has been read about a node's GPUs and pods, and writes its metrics.

Guarantees: writing calls neither the driver nor the kubelet, so a scrape does not wait for them. A GPU that does not
respond has no values, only its Xid errors and `shoal_gpu_responding` 0, and the others are not affected. Where the
kubelet does not answer, the pods are those of its last answer, and `shoal_agent_pod_devices_up` is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock

from shoal.agent.exporter.gpu_sampler import TakenReading
from shoal.agent.exporter.settings import ExporterSettings
from shoal.devices.agent_series import GpuFigures, agent_lines
from shoal.devices.claimable_gpus import PoolOfNode
from shoal.devices.dcgm_exposition import Exposition, GpuState, NodeNames, PodUses, entity_of, mig_devices
from shoal.devices.dcgm_holders import ContainerHolding, DeviceHolders
from shoal.devices.dcgm_jobs import Jobs
from shoal.devices.dcgm_text import Entity
from shoal.devices.gpu_accounting import GpuAccount, RecentEvents, allocated_part
from shoal.devices.port import GpuList, GpuReadings, InstalledGpu, LostGpu, XidEvent

_CLOCK_EVENTS = {
    "sw_power_cap": "power_cap",
    "hw_slowdown": "hw_slowdown",
    "sync_boost": "sync_boost",
    "sw_thermal_slowdown": "sw_thermal",
    "hw_thermal_slowdown": "hw_thermal",
    "hw_power_brake_slowdown": "hw_power_brake",
    "display_clock_setting": "display_clocks",
}
"""The names of the DCGM exporter for reasons of reduced clocks."""


class _History:
    """What is kept of one GPU between readings."""

    def __init__(self, settings: ExporterSettings) -> None:
        self.account = GpuAccount(settings.oldest_s)
        self.last_xid = 0
        self.xids: dict[int, int] = {}
        self.recent_xids: RecentEvents[int] = RecentEvents(settings.xid_window_ms / 1000)
        self.clock_events: RecentEvents[str] = RecentEvents(settings.clock_window_ms / 1000)
        self.taken: TakenReading | None = None
        self.uses: PodUses | None = None


class NodeState:
    def __init__(self, settings: ExporterSettings, driver_version: str, *, asks_kubelet: bool) -> None:
        self._settings = settings
        self._names = NodeNames(
            settings.hostname,
            driver_version,
            settings.labels,
            has_dashes=settings.has_dashes,
            xid_window_ms=settings.xid_window_ms,
            clock_window_ms=settings.clock_window_ms,
        )
        self._lock = Lock()
        self._is_listed = False
        self._gpus: dict[str, InstalledGpu] = {}
        """All that were ever listed, by UUID: a GPU that is lost keeps its labels."""
        self._unknown: Sequence[LostGpu] = ()
        """Lost before they were listed once."""
        self._histories: dict[str, _History] = {}
        self._holdings: Sequence[ContainerHolding] = ()
        self._jobs: Jobs = {}
        self._has_pods: bool | None = False if asks_kubelet else None
        self._holders = DeviceHolders((), settings.holders, {})

    # What threads report.

    def list_gpus(self, listed: GpuList) -> None:
        with self._lock:
            self._is_listed = True
            present = {gpu.index: gpu for gpu in listed.gpus}
            lost = {one.uuid for one in listed.lost}
            # A GPU that was replaced by another one at its place is gone; one that is lost is still shown.
            self._gpus = {
                **{uuid: gpu for uuid, gpu in self._gpus.items() if uuid in lost and gpu.index not in present},
                **{gpu.uuid: gpu for gpu in listed.gpus},
            }
            self._unknown = [one for one in listed.lost if one.uuid not in self._gpus]
            for uuid in self._gpus:
                self._histories.setdefault(uuid, _History(self._settings))
            self._find_holders()

    def add_reading(self, uuid: str, taken: TakenReading, uses: PodUses | None) -> None:
        with self._lock:
            gpu, history = self._gpus.get(uuid), self._histories.get(uuid)
            if gpu is None or history is None:
                return
            history.taken, history.uses = taken, uses
            history.account.add(taken.at_s, self._allocated(gpu), taken.readings)
            reasons = taken.readings.throttle_reasons if taken.readings is not None else None
            for reason in reasons or ():
                if reason in _CLOCK_EVENTS:
                    history.clock_events.add(taken.at_s, _CLOCK_EVENTS[reason])

    def add_xid(self, event: XidEvent, at_s: float) -> None:
        with self._lock:
            history = self._histories.setdefault(event.uuid, _History(self._settings))
            history.last_xid = event.xid
            history.xids[event.xid] = history.xids.get(event.xid, 0) + 1
            history.recent_xids.add(at_s, event.xid)

    def set_holdings(self, holdings: Sequence[ContainerHolding] | None) -> None:
        """None: the kubelet does not answer."""
        with self._lock:
            self._has_pods = holdings is not None
            if holdings is not None and holdings != self._holdings:
                self._holdings = holdings
                self._find_holders()

    def set_jobs(self, jobs: Jobs) -> None:
        with self._lock:
            self._jobs = jobs

    # What is asked.

    def problem(self) -> str:
        """Why there are no metrics yet; empty if there are."""
        return "" if self._is_listed else "the driver has not listed the GPUs yet"

    def gpu(self, uuid: str) -> InstalledGpu | None:
        return self._gpus.get(uuid)

    def text(self, now_s: float) -> str:
        with self._lock:
            gpus = sorted(self._gpus.values(), key=lambda gpu: gpu.index)
            states = [self._state(gpu, now_s) for gpu in gpus]
            figures = [self._figures(gpu, state, now_s) for gpu, state in zip(gpus, states, strict=True)]
            figures += [self._lost(one) for one in self._unknown]
            holders, jobs, has_pods = self._holders, self._jobs, self._has_pods
        settings = self._settings
        exposition = Exposition(states, holders, settings.holders, self._names, settings.selection, jobs)
        lines = exposition.lines() + agent_lines(figures, settings.labels, has_pods=has_pods)
        return "".join(f"{line}\n" for line in lines)

    def _state(self, gpu: InstalledGpu, now_s: float) -> GpuState:
        history = self._histories[gpu.uuid]
        return GpuState(
            gpu=gpu,
            readings=self._current(history, now_s),
            xid=history.last_xid,
            xid_counts=history.recent_xids.counts(now_s),
            clock_events=history.clock_events.counts(now_s),
            uses=history.uses,
        )

    def _figures(self, gpu: InstalledGpu, state: GpuState, now_s: float) -> GpuFigures:
        history = self._histories[gpu.uuid]
        account, readings = history.account, state.readings
        energy = readings.energy_mj if readings is not None else None
        return GpuFigures(
            entity=entity_of(gpu, None, self._names),
            responds=readings is not None,
            reading_age_s=None if history.taken is None else max(now_s - history.taken.at_s, 0.0),
            allocated_part=None if self._has_pods is None else self._allocated(gpu),
            allocated_s=None if self._has_pods is None else account.allocated_s,
            active_s=account.active_s,
            idle_s=account.idle_s(now_s) if readings is not None else None,
            energy_j=None if energy is None else energy / 1000,
            throttled_s=dict(account.throttled_s),
            xids=dict(history.xids),
        )

    def _lost(self, gpu: LostGpu) -> GpuFigures:
        entity = Entity(
            gpu=str(gpu.index), uuid=gpu.uuid or "", device=f"nvidia{gpu.index}", hostname=self._names.hostname
        )
        return GpuFigures(entity, responds=False)

    def _current(self, history: _History, now_s: float) -> GpuReadings | None:
        taken = history.taken
        if taken is None or now_s - taken.at_s > self._settings.oldest_s:
            return None
        return taken.readings

    def _find_holders(self) -> None:
        mig = mig_devices(self._gpus.values())
        pool = PoolOfNode(self._settings.node_name, list(self._gpus.values()))
        self._holders = DeviceHolders(self._holdings, self._settings.holders, mig, pool.find)

    def _allocated(self, gpu: InstalledGpu) -> float:
        return allocated_part(gpu, dict(self._held(gpu)))

    def _held(self, gpu: InstalledGpu) -> Iterator[tuple[str, bool]]:
        # A pod with a claimed MIG device is shown at the GPU too, and does not hold all of it.
        yield gpu.uuid, any(holder.mig is None for holder in self._holders.of(entity_of(gpu, None, self._names)))
        for one in gpu.instances:
            yield one.uuid, bool(self._holders.of(entity_of(gpu, one, self._names)))
