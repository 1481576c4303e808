"""Reports pods whose limits of virtual GPUs are not enforced, because HAMi's library is not on the node."""

from __future__ import annotations

import logging
from pathlib import Path

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.item import Obj
from shoal.client.recorder import Recorder
from shoal.devices.virtual_limits import LIMIT_NOT_ENFORCED, not_enforced, requested_limits

_log = logging.getLogger("shoal.agent.sharing")


class UnenforcedLimits:
    """`library`: where HAMi's device plugin puts it on the node."""

    def __init__(self, recorder: Recorder, library: Path) -> None:
        self._recorder, self._library = recorder, library

    def look(self, pod: Obj) -> None:
        """At a pod of the node that was not seen before."""
        limits = requested_limits(pod)
        if not limits or (pod.get("status") or {}).get("phase") in TERMINAL_PHASES or self._library.exists():
            return
        metadata, message = pod["metadata"], not_enforced(limits, str(self._library))
        _log.warning("pod %s/%s: %s", metadata["namespace"], metadata["name"], message)
        about = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        self._recorder.record(about, LIMIT_NOT_ENFORCED, message, type_="Warning")
