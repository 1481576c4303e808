"""The refusal of a pod by the kubelet, with the reason and the message that the status of the pod has."""

from __future__ import annotations

import msgspec


class Refused(msgspec.Struct, frozen=True):
    """An admission failure as the kubelet says it: the pod's status.reason and message."""

    reason: str
    """UnexpectedAdmissionError, OutOfcpu, TopologyAffinityError, ..."""
    message: str
