"""Remembers the MPS daemons and the former compute modes in a file, for an agent that is started again.

What is about to be done is written first, so that an agent that was killed between does not forget a daemon or a mode.
A file that cannot be parsed counts as empty and is reported.
"""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from shoal.agent.sharing.mps_control import MpsError
from shoal.agent.sharing.process_identity import ProcessIdentity
from shoal.agent.whole_file import replace_file
from shoal.devices.compute_mode import ComputeMode
from shoal.devices.mps_daemons import MpsDaemon

_log = logging.getLogger("shoal.agent.sharing")


class StartedDaemon(msgspec.Struct, frozen=True):
    daemon: MpsDaemon
    has_limits: bool = False
    """Whether its limits were set."""
    process: ProcessIdentity | None = None
    """None: not known."""


class MpsState(msgspec.Struct):
    daemons: dict[str, StartedDaemon] = {}
    """By folder."""
    former_modes: dict[str, ComputeMode] = {}
    """Of the GPUs whose mode was changed, by UUID."""


class MpsStateFile:
    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> MpsState:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=MpsState)
        except FileNotFoundError:
            return MpsState()
        except (OSError, msgspec.DecodeError) as error:
            _log.warning("%s cannot be read: %s; the MPS daemons of a former agent are not known", self._path, error)
            return MpsState()

    def write(self, state: MpsState) -> None:
        """Raises `MpsError`."""
        try:
            replace_file(self._path, msgspec.json.encode(state))
        except OSError as error:
            raise MpsError(f"{self._path} cannot be written: {error.strerror}") from error
