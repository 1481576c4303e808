"""Names nodes with GPUs that get no driver, or one for another operating system."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from shoal.operator.components.facts import OperatorNode, fleet_facts
from shoal.operator.policy.spec import ClusterPolicySpec

SYSTEMS, WITHOUT_DRIVER = "SeveralOperatingSystems", "NoNVIDIADriver"
_MOST_NAMES = 3


def driver_remarks(
    spec: ClusterPolicySpec, nodes: Iterable[OperatorNode], covered: Collection[str]
) -> list[tuple[str, str]]:
    """Reasons and messages. `covered`: the nodes that an NVIDIADriver selects."""
    driver, with_gpus = spec.driver, [one for one in nodes if one.has_gpus]
    if not driver.enabled or driver.use_precompiled:
        return []
    if driver.use_nvidia_driver_crd:
        left = sorted(one.name for one in with_gpus if one.name not in covered)
        if not left:
            return []
        more = f" and {len(left) - _MOST_NAMES} others" if len(left) > _MOST_NAMES else ""
        what = f"no NVIDIADriver selects node {', '.join(left[:_MOST_NAMES])}{more}, which gets no driver"
        return [(WITHOUT_DRIVER, f"{what}; create one whose nodeSelector selects it")]
    systems = fleet_facts(with_gpus).systems
    if len(systems) < 2:
        return []
    others = sorted(one.name for one in with_gpus if one.os and one.os != systems[0])
    more = f" and {len(others) - _MOST_NAMES} others" if len(others) > _MOST_NAMES else ""
    what = (
        f"the nodes with GPUs have the operating systems {', '.join(systems)}, and the driver is for {systems[0]}: it "
        f"does not work on node {', '.join(others[:_MOST_NAMES])}{more}"
    )
    fix = "set spec.driver.useNvidiaDriverCRD and create an NVIDIADriver for each operating system"
    return [(SYSTEMS, f"{what}; {fix}")]
