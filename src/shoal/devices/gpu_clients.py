"""Names the programs that hold GPUs on a node and are stopped while a MIG layout changes, as NVIDIA's MIG manager does.

Their DaemonSets select nodes by a label with the value true. The value paused-for-mig-change removes their pods from
the node until the change is over; a component that a user has switched off stays off.
"""

from __future__ import annotations

PAUSED = "paused-for-mig-change"
_ON, _OFF = "true", "false"
_DEPLOY = "nvidia.com/gpu.deploy."
DEPLOY_LABELS = tuple(
    _DEPLOY + name for name in ("device-plugin", "gpu-feature-discovery", "dcgm-exporter", "dcgm", "nvsm", "client")
)
CLIENT_APPS = ("nvidia-device-plugin-daemonset", "gpu-feature-discovery", "nvidia-dcgm-exporter", "nvidia-dcgm")
"""The labels `app` of the pods to wait for, in this order."""
VALIDATOR_APPS = ("nvidia-cuda-validator", "nvidia-device-plugin-validator")
"""Pods that are deleted before a change: they hold GPUs and do not return by themselves."""
OPERATOR_VALIDATOR_APP = "nvidia-operator-validator"
"""Deleted after a change, so that the node is validated again."""


def while_changing(value: str | None) -> str:
    return _OFF if value == _OFF else PAUSED


def after_change(value: str | None) -> str:
    return _OFF if value == _OFF else _ON
