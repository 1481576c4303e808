"""Keeps the MPS daemons of a node as its configuration says, and the compute mode of their GPUs.

`check` compares what runs with what is wanted. Guarantees: the daemons continue after the end of the agent, and the
next agent takes them over; one that has ended or does not answer is started again with increasing delays, and its GPUs
are unusable meanwhile; a daemon that is wanted no longer ends when its last client has ended; a GPU that no daemon uses
any more gets its former compute mode back; new limits do not end clients.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from shoal.agent.sharing.mps_control import MpsControl, MpsError
from shoal.agent.sharing.mps_state import MpsStateFile, StartedDaemon
from shoal.agent.sharing.process_identity import is_running, kill
from shoal.devices.compute_mode import ComputeModeError, ComputeModes
from shoal.devices.mps_daemons import MpsDaemon

_log = logging.getLogger("shoal.agent.sharing")
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder that the daemon shares with its clients
_HEALTH_S, _FIRST_RETRY_S, _LONGEST_RETRY_S = 5.0, 1.0, 30.0
_MOST_SILENCES = 3
"""A daemon that runs and has not answered so often is ended."""


class MpsParts(msgspec.Struct, frozen=True):
    control: MpsControl
    modes: ComputeModes
    state: MpsStateFile
    clock: Callable[[], float]
    """Seconds."""
    shared_memory: Path = SHARED_MEMORY


class _Watch(msgspec.Struct):
    """What is known of one daemon since the start of this agent."""

    wanted: MpsDaemon | None = None
    """As it was at the last check."""
    ready: frozenset[str] = frozenset()
    """The GPUs that clients can use, by UUID; empty: the daemon is not ready."""
    check_at_s: float = 0.0
    delay_s: float = _FIRST_RETRY_S
    silences: int = 0
    complaint: str = ""


class MpsDaemons:
    def __init__(self, parts: MpsParts) -> None:
        self._parts = parts
        self._state = parts.state.read()
        self._watches: dict[str, _Watch] = {}

    def check(self, wanted: Sequence[MpsDaemon]) -> frozenset[str]:
        """Start, watch and end daemons; the GPUs whose daemon is ready, by UUID. Raises `MpsError` if the state cannot
        be written; nothing is started then.
        """
        by_folder = {str(one.folders.own): one for one in wanted}
        for folder in [one for one in self._state.daemons if one not in by_folder]:
            self._end(folder)
        leaving = {
            gpu.uuid
            for folder, one in self._state.daemons.items()
            if folder not in by_folder
            for gpu in one.daemon.gpus
        }
        for folder, daemon in by_folder.items():
            self._keep(folder, daemon, leaving)
        self._restore_modes({gpu.uuid for one in wanted for gpu in one.gpus} | leaving)
        for folder in [one for one in self._watches if one not in by_folder and one not in self._state.daemons]:
            del self._watches[folder]
        ready = [self._watches[folder].ready for folder in by_folder]
        _mark_ready(wanted, is_ready=all(ready))
        return frozenset[str]().union(*ready)

    @property
    def folders(self) -> frozenset[str]:
        """Of the daemons that run or are being ended."""
        return frozenset(self._state.daemons)

    def complaint(self, daemon: MpsDaemon) -> str:
        """Why the daemon was not ready at the last check; empty if it was."""
        watch = self._watches.get(str(daemon.folders.own))
        return "" if watch is None or watch.ready else watch.complaint

    def _keep(self, folder: str, daemon: MpsDaemon, leaving: Collection[str]) -> None:
        watch, now_s = self._watches.setdefault(folder, _Watch()), self._parts.clock()
        started = self._state.daemons.get(folder)
        has_ended = started is not None and started.process is not None and not is_running(started.process)
        is_new = watch.wanted != daemon or (has_ended and watch.ready)
        if not is_new and now_s < watch.check_at_s:
            return
        if has_ended and watch.ready:
            _log.warning("%s: the MPS daemon has ended; it is started again", daemon.resource)
        watch.wanted, watch.ready = daemon, frozenset()
        try:
            self._prepare(daemon, leaving)
            usable, complaint = self._with_exclusive_gpus(daemon)
            self._make_ready(folder, usable, watch)
        except (MpsError, ComputeModeError, OSError) as error:
            self._complain(watch, daemon, str(error))
            watch.check_at_s = self._parts.clock() + watch.delay_s
            watch.delay_s = min(2 * watch.delay_s, _LONGEST_RETRY_S)
            return
        if complaint:
            self._complain(watch, daemon, complaint)
        elif watch.complaint:
            _log.info("%s: the MPS daemon is ready again", daemon.resource)
            watch.complaint = ""
        watch.ready, watch.silences = frozenset(gpu.uuid for gpu in usable.gpus), 0
        watch.delay_s, watch.check_at_s = _FIRST_RETRY_S, self._parts.clock() + _HEALTH_S

    def _prepare(self, daemon: MpsDaemon, leaving: Collection[str]) -> None:
        """Raises `MpsError` or `OSError` if the daemon cannot run."""
        held = sorted({gpu.uuid for gpu in daemon.gpus} & set(leaving))
        if held:
            raise MpsError(f"the former MPS daemon of {', '.join(held)} still has clients")
        for name in (daemon.folders.pipe, daemon.folders.log, daemon.folders.shared_memory):
            Path(name).mkdir(parents=True, exist_ok=True)
        shared = Path(daemon.folders.shared_memory)
        if not shared.samefile(self._parts.shared_memory):
            raise MpsError(
                f"{shared} is not the folder {self._parts.shared_memory} of the agent, which daemon and containers "
                f"have to share: mount {shared} at {self._parts.shared_memory} in the agent's container; without a "
                f"container: mount --bind {self._parts.shared_memory} {shared}"
            )

    def _with_exclusive_gpus(self, daemon: MpsDaemon) -> tuple[MpsDaemon, str]:
        """The daemon with the GPUs whose mode is set, and why others have another mode. Raises `ComputeModeError` if
        none is left: a GPU that was lost does not keep the others from their clients.
        """
        found, faults = [], []
        for gpu in daemon.gpus:
            try:
                self._make_exclusive(gpu.uuid)
            except ComputeModeError as error:
                faults.append(error)
            else:
                found.append(gpu)
        if faults and not found:
            raise faults[0]
        return msgspec.structs.replace(daemon, gpus=tuple(found)), "; ".join(str(one) for one in faults)

    def _make_exclusive(self, uuid: str) -> None:
        former = self._parts.modes.mode(uuid)
        if former == "exclusive-process":
            return
        if uuid not in self._state.former_modes:
            self._state.former_modes[uuid] = former
            self._save()
        self._parts.modes.set_mode(uuid, "exclusive-process")

    def _make_ready(self, folder: str, daemon: MpsDaemon, watch: _Watch) -> None:
        control, started = self._parts.control, self._state.daemons.get(folder)
        if not control.is_healthy(daemon):
            self._end_silent(daemon, started, watch)
            self._remember(folder, StartedDaemon(daemon))
            control.start(daemon)
            _log.info("%s: started an MPS daemon for %d GPUs", daemon.resource, len(daemon.gpus))
            started = None
        process = control.process(daemon)
        if started is None or started.daemon != daemon or not started.has_limits or started.process != process:
            self._remember(folder, StartedDaemon(daemon, process=process))
            control.set_limits(daemon)
            self._remember(folder, StartedDaemon(daemon, has_limits=True, process=process))
        if not control.is_healthy(daemon):
            raise MpsError("the daemon does not answer")
        Path(daemon.folders.started_file).touch()

    def _end_silent(self, daemon: MpsDaemon, started: StartedDaemon | None, watch: _Watch) -> None:
        """Raises `MpsError` while it may still answer."""
        process = started.process if started is not None else None
        process = process or self._parts.control.process(daemon)
        if process is None or not is_running(process):
            return
        watch.silences += 1
        if watch.silences < _MOST_SILENCES:
            raise MpsError("the daemon does not answer")
        _log.warning("%s: the MPS daemon is ended because it does not answer", daemon.resource)
        kill(process)
        watch.silences = 0

    def _end(self, folder: str) -> None:
        """End a daemon that is wanted no longer, unless it has clients."""
        started = self._state.daemons[folder]
        watch, now_s = self._watches.setdefault(folder, _Watch()), self._parts.clock()
        if watch.wanted is not None:
            watch.wanted, watch.ready, watch.check_at_s, watch.complaint = None, frozenset(), now_s, ""
        if now_s < watch.check_at_s:
            return
        watch.check_at_s = now_s + _HEALTH_S
        daemon, control = started.daemon, self._parts.control
        try:
            if control.is_healthy(daemon):
                clients = control.clients(daemon)
                if clients:
                    self._complain(
                        watch, daemon, f"the daemon is wanted no longer and ends after its clients: {clients}"
                    )
                    return
                control.end(daemon)
            else:
                self._end_silent(daemon, started, watch)
        except MpsError as error:
            self._complain(watch, daemon, str(error))
            return
        with suppress(OSError):
            for name in (daemon.folders.started_file, daemon.folders.ready_file):
                Path(name).unlink(missing_ok=True)
        del self._state.daemons[folder]
        self._save()
        _log.info("%s: ended the MPS daemon", daemon.resource)

    def _restore_modes(self, used: Collection[str]) -> None:
        for uuid in [one for one in self._state.former_modes if one not in used]:
            try:
                self._parts.modes.set_mode(uuid, self._state.former_modes[uuid])
            except ComputeModeError as error:
                watch = self._watches.setdefault(uuid, _Watch())
                if watch.complaint != str(error):
                    _log.warning("%s", error)
                watch.complaint = str(error)
                continue
            del self._state.former_modes[uuid]
            self._save()

    def _remember(self, folder: str, started: StartedDaemon) -> None:
        self._state.daemons[folder] = started
        self._save()

    def _save(self) -> None:
        self._parts.state.write(self._state)

    @staticmethod
    def _complain(watch: _Watch, daemon: MpsDaemon, what: str) -> None:
        """The same complaint is logged once."""
        if what != watch.complaint:
            _log.warning("%s: MPS: %s", daemon.resource, what)
        watch.complaint = what


def _mark_ready(wanted: Sequence[MpsDaemon], *, is_ready: bool) -> None:
    for path in {Path(one.folders.ready_file) for one in wanted}:
        with suppress(OSError):
            if not is_ready:
                path.unlink(missing_ok=True)
            elif not path.exists():
                path.touch()
