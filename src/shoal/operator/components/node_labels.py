"""Decides the labels of a node by which the components are placed on it.

Guarantees: a label that has a value is never overwritten, so that the `false` of a user, `pre-installed` of the driver
manager and `paused-for-mig-change` of the MIG manager remain in effect; a node without GPUs loses the labels.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from shoal.devices.operator_labels import (
    CONTAINER,
    DEPLOY,
    PRESENT,
    WORKLOAD_CONFIG,
    WORKLOAD_CONFIGS,
    all_deploy_labels,
    workload_labels,
)
from shoal.operator.components.facts import KERNEL, OperatorNode
from shoal.operator.components.nvidia_drivers import POOL_LABEL
from shoal.operator.policy.spec import ClusterPolicySpec

OPERANDS = DEPLOY + "operands"
MIG_CONFIG, MIG_CAPABLE = "nvidia.com/mig.config", "nvidia.com/mig.capable"
_DISABLED = "all-disabled"


class LabelChanges(msgspec.Struct, frozen=True):
    labels: dict[str, str | None] = {}
    """To set; None: to remove."""
    warning: str = ""


def label_changes(node: OperatorNode, spec: ClusterPolicySpec, pool: str | None = None) -> LabelChanges:
    """`pool`: that of the NVIDIADriver to which the node belongs; empty: of none; None: as it is."""
    present = node.labels
    if not node.has_gpus:
        return LabelChanges(removed_labels(node) if PRESENT in present else {})
    config, warning = _workload_config(present, spec)
    is_capable = present.get(MIG_CAPABLE) == "true"
    wanted = workload_labels(config, is_mig_capable=is_capable)
    if present.get(OPERANDS) == "false":
        wanted = {PRESENT: "true"}
    changes: dict[str, str | None] = {name: value for name, value in wanted.items() if not present.get(name)}
    changes |= {name: None for name in sorted(all_deploy_labels()) if name in present and name not in wanted}
    default = spec.mig_manager.config.default
    if spec.mig_manager.enabled and default == _DISABLED and is_capable and not present.get(MIG_CONFIG):
        changes[MIG_CONFIG] = default
    if spec.driver.use_precompiled and node.kernel and not present.get(KERNEL):
        changes[KERNEL] = node.kernel
    if pool is not None and present.get(POOL_LABEL, "") != pool:
        changes[POOL_LABEL] = pool or None
    return LabelChanges(changes, warning)


def placing_labels(node: OperatorNode) -> list[str]:
    """The labels of a node by which components are placed."""
    return [name for name in sorted(node.labels) if name in all_deploy_labels() or name in (PRESENT, POOL_LABEL)]


def removed_labels(node: OperatorNode, kept: Collection[str] = ()) -> dict[str, str | None]:
    """The removal of everything that `label_changes` sets to place components. `kept`: what was there before."""
    return {name: None for name in placing_labels(node) if name not in kept}


def _workload_config(labels: dict[str, str], spec: ClusterPolicySpec) -> tuple[str, str]:
    sandbox = spec.sandbox_workloads
    if not sandbox.enabled:
        return CONTAINER, ""
    given = labels.get(WORKLOAD_CONFIG, "")
    if not given:
        return sandbox.default_workload, ""
    if given in WORKLOAD_CONFIGS:
        return given, ""
    known = ", ".join(WORKLOAD_CONFIGS)
    return sandbox.default_workload, (
        f"label {WORKLOAD_CONFIG}={given}: unknown value; {sandbox.default_workload} applies; use one of {known}"
    )
