"""Builds the DaemonSets of NVIDIADrivers: one for each operating system of their nodes, and for each kernel if the
driver is precompiled.

The operator decides which nodes belong to which DaemonSet and writes it as a label, so that a node never has two
drivers. Of several NVIDIADrivers that select a node, the oldest gets it, and the others report the conflict.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

import msgspec

from shoal.operator.components.build import Building, Pool
from shoal.operator.components.driver import DriverPool, driver_daemon_set
from shoal.operator.components.facts import OperatorNode
from shoal.operator.policy.nvidia_driver import NvidiaDriver
from shoal.operator.policy.operands import Obj
from shoal.units.errors import UserError

POOL_LABEL = "shoal.dev/driver-pool"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9-]")
_LONGEST = 50


class DriverAssignment(msgspec.Struct, frozen=True):
    pools: dict[str, str] = {}
    """The value of the label, by node."""
    daemon_sets: dict[str, tuple[Obj, ...]] = {}
    """By NVIDIADriver."""
    faults: dict[str, tuple[str, str]] = {}
    """Reason and message, by NVIDIADriver."""


def assign_drivers(build: Building, drivers: Iterable[NvidiaDriver], nodes: Sequence[OperatorNode]) -> DriverAssignment:
    ordered = sorted(drivers, key=lambda one: (one.nodes.default, one.created, one.name))
    owners: dict[str, NvidiaDriver] = {}
    faults: dict[str, tuple[str, str]] = {}
    for driver in ordered:
        for node in nodes:
            if not node.has_gpus or not driver.nodes.selects(node.name, node.labels):
                continue
            owner = owners.setdefault(node.name, driver)
            if owner is not driver and driver.nodes.default == owner.nodes.default:
                words = f"node {node.name} is selected by NVIDIADriver {owner.name} too, which is older"
                faults.setdefault(driver.name, ("ConflictingNodeSelector", words))
    pools: dict[str, str] = {}
    sets: dict[str, tuple[Obj, ...]] = {}
    for driver in ordered:
        own = [node for node in nodes if owners.get(node.name) is driver]
        try:
            found = _of_driver(build, driver, own)
        except UserError as error:
            faults.setdefault(driver.name, ("ReconcileFailed", str(error)))
            continue
        sets[driver.name] = tuple(found.values())
        pools |= {node.name: _label(driver, _pool_of(driver, node)) for node in own}
    return DriverAssignment(pools, sets, faults)


def _of_driver(build: Building, driver: NvidiaDriver, nodes: Sequence[OperatorNode]) -> dict[str, Obj]:
    """The DaemonSets, by the label of their nodes."""
    own = _building(build, driver)
    found = {}
    for pool in sorted({_pool_of(driver, one) for one in nodes}, key=lambda one: (one.system, one.kernel)):
        label = _label(driver, pool)
        value = {POOL_LABEL: label}
        found[label] = driver_daemon_set(own, pool, Pool(f"-{label}", value, value))
    return found


def _pool_of(driver: NvidiaDriver, node: OperatorNode) -> DriverPool:
    return DriverPool(node.os, node.kernel if driver.driver.use_precompiled else "")


def _label(driver: NvidiaDriver, pool: DriverPool) -> str:
    parts = "-".join(one for one in (driver.name, pool.system, pool.kernel) if one)
    name = _NOT_IN_NAMES.sub("-", parts.lower()).strip("-")
    if len(name) <= _LONGEST and name == parts:
        return name
    # Two names that differ only in replaced or cut characters must not become one.
    digest = hashlib.sha256(parts.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST - 9].strip('-')}-{digest}"


def _building(build: Building, driver: NvidiaDriver) -> Building:
    nodes, common = driver.nodes, build.spec.daemonsets
    daemonsets = msgspec.structs.replace(
        common,
        labels={**common.labels, **nodes.labels},
        annotations={**common.annotations, **nodes.annotations},
        tolerations=nodes.tolerations or common.tolerations,
        priority_class_name=nodes.priority_class_name or common.priority_class_name,
    )
    fields = driver.driver
    if driver.upgrade_policy is None:
        # It decides how a driver pod drains its node.
        fields = msgspec.structs.replace(fields, upgrade_policy=build.spec.driver.upgrade_policy)
    spec = msgspec.structs.replace(
        build.spec, driver=fields, gds=nodes.gds, gdrcopy=nodes.gdrcopy, daemonsets=daemonsets
    )
    return msgspec.structs.replace(build, spec=spec)
