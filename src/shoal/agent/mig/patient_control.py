"""Changes MIG layouts by a driver some of whose calls may never return.

Guarantees: a call that does not return in time is a `MigChangeError`, and so are the calls after it until it has
returned, so that no second change begins while the first one may still be made. Calls of several threads are made one
after the other. Rejected: to repeat the call, because the driver may have made the change already.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, TypeVar

from shoal.agent.patient_call import PatientCall, SilentDriverError
from shoal.devices.mig_port import GpuInstance, MigChangeError, MigControl

T = TypeVar("T")
_PATIENCE_S = 60.0


class PatientMigControl:
    """Implements MigControl."""

    def __init__(self, control: MigControl, patience_s: float = _PATIENCE_S) -> None:
        self._control, self._patience_s = control, patience_s
        self._lock = threading.Lock()
        self._blocked: Future[Any] | None = None
        """The call that did not return in time."""

    def instances(self, uuid: str) -> tuple[GpuInstance, ...]:
        return self._called(partial(self._control.instances, uuid))

    def set_mode(self, uuid: str, *, enabled: bool) -> bool:
        return self._called(partial(self._control.set_mode, uuid, enabled=enabled))

    def create(self, uuid: str, profile: str, start: int, compute: tuple[int, ...]) -> None:
        self._called(partial(self._control.create, uuid, profile, start, compute))

    def destroy(self, uuid: str, number: int) -> None:
        self._called(partial(self._control.destroy, uuid, number))

    def _called(self, work: Callable[[], T]) -> T:
        with self._lock:
            if self._blocked is not None and not wait((self._blocked,), 0.0).done:
                raise MigChangeError("other", "an earlier call of NVIDIA's driver has not returned")
            call = PatientCall(work, self._patience_s)
            running = call.begin()
            try:
                return call()
            except SilentDriverError as error:
                self._blocked = running
                raise MigChangeError("other", error.what) from error
