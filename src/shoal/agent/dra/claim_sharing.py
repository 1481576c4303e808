"""Applies how the configurations of claims share GPUs: sets time slices, and runs one MPS daemon for each claim.

Guarantees: which daemons run follows from the prepared claims, so those that a process left behind end with the next
check; a daemon that has ended is started again; a GPU gets its former compute mode and the driver's time slice back. A
time slice that cannot be reset does not keep a claim from ending, and is logged.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from shoal.agent.sharing.mps_control import MpsError
from shoal.agent.sharing.mps_daemons import MpsDaemons
from shoal.agent.sharing.time_slice import TimeSlice, TimeSliceError
from shoal.devices.cdi_spec import ContainerEdits
from shoal.devices.claim_config import Interval
from shoal.devices.claim_devices import PreparedClaim
from shoal.devices.claim_sharing import DeviceSharing, claim_daemon, mps_edits
from shoal.devices.claimable_devices import CLAIM_DRIVER
from shoal.devices.mps_daemons import MpsDaemon
from shoal.units.errors import TemporaryError, UserError, Where

_log = logging.getLogger("shoal.agent.dra")
_RETRY_S = 2.0
_SLICES: Mapping[Interval, TimeSlice] = {"Default": "default", "Short": "short", "Medium": "medium", "Long": "long"}
SetSlice = Callable[[str, TimeSlice], None]


class ClaimSharing:
    """`daemons`: None where no program for MPS is known. `root`: the folder of MPS. `set_slice`: of the GPU with this
    UUID; raises `TimeSliceError`.
    """

    def __init__(self, daemons: MpsDaemons | None, root: str, set_slice: SetSlice) -> None:
        self._daemons, self._root, self._set_slice = daemons, root, set_slice
        self._complaint = ""

    def apply(self, claim: PreparedClaim, claims: Collection[PreparedClaim]) -> None:
        """`claims`: all that are prepared, with this one. Raises `UserError` if the claim cannot be shared like this,
        `TemporaryError` if it is not done.
        """
        daemon = self._daemon(claim)
        if daemon is not None and self._daemons is None:
            fix = "name the program with --mps-control, or leave sharing out"
            what = "MPS is not available on this node: no nvidia-cuda-mps-control is known"
            raise UserError(what, where=Where(obj=str(claim.claim)), fix=fix)
        for uuid, sharing in _sharing(claim).items():
            if sharing.interval is not None:
                try:
                    self._set_slice(uuid, _SLICES[sharing.interval])
                except TimeSliceError as error:
                    raise TemporaryError(f"{claim.claim}: the time slice is not set: {error}", _RETRY_S) from error
        if daemon is None:
            return
        ready = self._ready(claims)
        missing = [gpu.uuid for gpu in daemon.gpus if gpu.uuid not in ready]
        if missing:
            why = self._daemons.complaint(daemon) if self._daemons is not None else ""
            what = f"{claim.claim}: the MPS daemon is not ready: {why or 'it is being started'}"
            raise TemporaryError(what, _RETRY_S)

    def undo(self, claim: PreparedClaim, claims: Collection[PreparedClaim]) -> None:
        """`claims`: those that are still prepared."""
        for uuid, sharing in _sharing(claim).items():
            if sharing.interval is not None:
                try:
                    self._set_slice(uuid, "default")
                except TimeSliceError as error:
                    _log.warning("%s: the time slice of %s is not reset: %s", claim.claim, uuid, error)
        if any(one.has_mps for one in _sharing(claim).values()):
            self.check(claims)

    def check(self, claims: Collection[PreparedClaim]) -> None:
        """Start daemons again that have ended, and end those of claims that are prepared no longer."""
        try:
            self._ready(claims)
        except TemporaryError as error:
            if str(error) != self._complaint:
                _log.warning("%s", error)
            self._complaint = str(error)
        else:
            self._complaint = ""
            self._remove_folders()

    def edits(self, claim: PreparedClaim) -> dict[str, ContainerEdits]:
        """What containers need besides the devices, by UUID."""
        daemon = self._daemon(claim)
        return {} if daemon is None else {gpu.uuid: mps_edits(daemon.folders) for gpu in daemon.gpus}

    def _ready(self, claims: Collection[PreparedClaim]) -> frozenset[str]:
        if self._daemons is None:
            return frozenset()
        found = (self._daemon(one) for one in claims)
        try:
            return self._daemons.check([daemon for daemon in found if daemon is not None])
        except MpsError as error:
            raise TemporaryError(f"MPS: {error}", _RETRY_S) from error

    def _remove_folders(self) -> None:
        """Those of daemons that have ended: each claim has a new one."""
        kept = self._daemons.folders if self._daemons is not None else frozenset()
        for folder in (Path(self._root) / CLAIM_DRIVER).glob("claim-*"):
            if str(folder) not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    def _daemon(self, claim: PreparedClaim) -> MpsDaemon | None:
        try:
            return claim_daemon(claim.claim.uid, _sharing(claim), self._root)
        except UserError as error:
            raise error.at(Where(obj=str(claim.claim))) from error


def _sharing(claim: PreparedClaim) -> dict[str, DeviceSharing]:
    return {one.uuid: one.sharing for one in claim.devices if isinstance(one.sharing, DeviceSharing)}
