"""Prepares the devices of claims: writes a CDI specification for each claim, and answers its ids.

Guarantees: prepare and unprepare can be repeated, also after the process ended between any two steps; an error of one
claim does not concern the others; a device is prepared for one claim at a time, apart from `adminAccess`. The claim is
recorded before its file is written, and its file is removed before the record. MIG instances that a claim needs are
created after the claim was found valid; they stay when the claim ends, until another claim needs their place.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from shoal.agent.cdi.spec_file import write_spec
from shoal.agent.dra.checkpoint import ClaimCheckpoint
from shoal.agent.dra.claim_sharing import ClaimSharing
from shoal.agent.protos import dra_pb2 as dra
from shoal.api.claims import ResourceClaim
from shoal.devices.cdi_devices import CLAIM_KIND, CdiInput, claim_device, claim_spec, qualified
from shoal.devices.claim_devices import ClaimName, PreparedClaim, check_not_held, devices_of_claim
from shoal.devices.claimable_devices import ClaimableDevice
from shoal.units.errors import ShoalError, TemporaryError, UserError, Where

_log = logging.getLogger("shoal.agent.dra")
_RETRY_S = 5.0


class ClaimReader(Protocol):
    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """None if it does not exist. Raises `TemporaryError` if the cluster does not answer."""
        ...


class PreparableDevices(Protocol):
    """The devices of this node; implemented by `ClaimableDevices`."""

    def by_name(self) -> Mapping[str, ClaimableDevice]: ...
    def possible(self) -> Mapping[str, ClaimableDevice]: ...
    def create(self, wanted: Collection[str], held: Collection[str]) -> None: ...


class ClaimPreparation:
    """Implements `DraService`. `cdi`: what a specification needs of the node."""

    def __init__(
        self,
        node: str,
        checkpoint: ClaimCheckpoint,
        cdi_folder: Path,
        devices: PreparableDevices,
        cdi: Callable[[], CdiInput],
        reader: ClaimReader,
        sharing: ClaimSharing,
    ) -> None:
        self._node, self._checkpoint, self._folder = node, checkpoint, cdi_folder
        self._devices, self._cdi, self._reader, self._sharing = devices, cdi, reader, sharing
        self._lock = threading.Lock()

    def restore(self) -> None:
        """Write the files of claims that are prepared, because a restart of the machine empties their folder."""
        with self._lock:
            for one in self._checkpoint.claims.values():
                try:
                    self._write(one)
                except ShoalError as error:
                    _log.warning("%s: %s", one.claim, error)

    def check_sharing(self) -> None:
        """Keep what shares the devices of prepared claims running."""
        with self._lock:
            self._sharing.check(self._checkpoint.claims.values())

    def prepare(self, request: dra.NodePrepareResourcesRequest) -> dra.NodePrepareResourcesResponse:
        answer = dra.NodePrepareResourcesResponse()
        for one in request.claims:
            asked = ClaimName(one.namespace, one.name, one.uid)
            try:
                prepared = self._prepared(asked)
            except ShoalError as error:
                _log.warning("cannot prepare %s: %s", asked, error)
                answer.claims[one.uid].CopyFrom(dra.NodePrepareResourceResponse(error=str(error)))
                continue
            answer.claims[one.uid].CopyFrom(_answer(prepared))
        return answer

    def unprepare(self, request: dra.NodeUnprepareResourcesRequest) -> dra.NodeUnprepareResourcesResponse:
        answer = dra.NodeUnprepareResourcesResponse()
        for one in request.claims:
            try:
                with self._lock:
                    self._unprepare(one.uid)
            except ShoalError as error:
                _log.warning("cannot unprepare claim %s/%s: %s", one.namespace, one.name, error)
                answer.claims[one.uid].error = str(error)
                continue
            answer.claims[one.uid].SetInParent()
        return answer

    def _prepared(self, asked: ClaimName) -> PreparedClaim:
        _check_uid(asked.uid)
        with self._lock:
            before = self._checkpoint.claims.get(asked.uid)
            if before is not None and not self._has_lost_instances(before):
                self._sharing.apply(before, self._checkpoint.claims.values())
                self._write(before)
                return before
        # The cluster may take long to answer, and other claims do not wait for it.
        claim = self._reader.claim(asked.namespace, asked.name)
        # Nothing is changed for a claim that is refused.
        found = devices_of_claim(asked, claim, self._node, self._devices.possible())
        with self._lock:
            check_not_held(PreparedClaim(asked, found), self._checkpoint.claims)
            self._create([one.device for one in found], asked)
            wanted = PreparedClaim(asked, devices_of_claim(asked, claim, self._node, self._devices.by_name()))
            self._checkpoint.add(wanted)
            try:
                self._sharing.apply(wanted, self._checkpoint.claims.values())
                self._write(wanted)
            except ShoalError:
                # The claim keeps its devices if this fails too; the kubelet unprepares it later.
                with suppress(OSError, ShoalError):
                    self._checkpoint.remove(asked.uid)
                    self._path(asked.uid).unlink(missing_ok=True)
                    self._sharing.undo(wanted, self._checkpoint.claims.values())
                raise
        _log.info("prepared %s: %s", asked, ", ".join(one.device for one in wanted.devices))
        return wanted

    def _create(self, names: Collection[str], asked: ClaimName) -> None:
        others = (one for one in self._checkpoint.claims.values() if one.claim.uid != asked.uid)
        held = {device.uuid for one in others for device in one.devices}
        try:
            self._devices.create(names, held)
        except UserError as error:
            raise error.at(Where(obj=str(asked))) from error

    def _has_lost_instances(self, claim: PreparedClaim) -> bool:
        """MIG instances do not survive a restart of the machine, and are created again where that is allowed."""
        present = self._devices.by_name()
        missing = [one.device for one in claim.devices if one.device not in present]
        return bool(missing) and self._devices.possible().keys() >= {*missing}

    def _unprepare(self, uid: str) -> None:
        _check_uid(uid)
        path = self._path(uid)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise TemporaryError(f"{path}: cannot be removed: {error.strerror or error}", _RETRY_S) from error
        claim = self._checkpoint.claims.get(uid)
        self._checkpoint.remove(uid)
        if claim is not None:
            self._sharing.undo(claim, self._checkpoint.claims.values())

    def _write(self, prepared: PreparedClaim) -> None:
        given = self._cdi()
        named = {claim_device(prepared.claim.uid, one.device): one.uuid for one in prepared.devices}
        spec = claim_spec(given, named, self._sharing.edits(prepared))
        if len(spec.devices) < len(named):
            missing = ", ".join(name for name in named if name not in {one.name for one in spec.devices})
            raise UserError(f"there are no device nodes for {missing}", where=Where(obj=str(prepared.claim)))
        write_spec(spec, self._path(prepared.claim.uid))

    def _path(self, uid: str) -> Path:
        return self._folder / f"{CLAIM_KIND.replace('/', '-')}_{uid}.json"


def _answer(prepared: PreparedClaim) -> dra.NodePrepareResourceResponse:
    return dra.NodePrepareResourceResponse(
        devices=[
            dra.Device(
                request_names=one.requests,
                pool_name=one.pool,
                device_name=one.device,
                cdi_device_ids=qualified(CLAIM_KIND, [claim_device(prepared.claim.uid, one.device)]),
            )
            for one in prepared.devices
        ]
    )


def _check_uid(uid: str) -> None:
    """It becomes part of the name of a file."""
    if not uid or not all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in uid):
        raise UserError(f"{uid!r} is not the uid of a claim")
