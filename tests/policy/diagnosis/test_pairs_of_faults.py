"""Each fault of a node beside each other one, and each fault that keeps a pod waiting beside each other one: the causes
of both are named, unless one of them hides the other. `SHOAL_DEEP=10` runs it; the 180 pairs take a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import combinations
from pathlib import Path

import pytest

from build.broken_clusters import TEAM, BrokenCluster, broken_cluster
from build.depth import is_deep
from build.doctor_faults import NODE, WAITING, Fault
from build.virtual_time import in_virtual_time
from shoal.client.kind import PODS

_SAME: tuple[frozenset[str], ...] = (
    frozenset({"the driver fails", "the image of the driver is missing", "no driver is installed"}),
    frozenset({"the plugin fails", "the image of the plugin is missing", "the plugin is paused"}),
    frozenset({"a GPU fell off the bus", "all GPUs fell off the bus"}),
    frozenset({"all GPUs fell off the bus", "double bit errors"}),
    frozenset({"all GPUs fell off the bus", "an error of a program"}),
    frozenset({"double bit errors", "an error of a program"}),
    frozenset({"a layout on a GPU in use", "an unknown layout"}),
    frozenset(
        {
            "a configuration that no policy names",
            "a policy without a default",
            "an unknown key of the configuration",
            "a configuration that the plugin refuses",
        }
    ),
    frozenset(name for name in WAITING if name.startswith("full nodes")),
    frozenset({"taints", "no device plugin"}),
)
"""Faults that are made at one place, so that the second one replaces the first."""
_PLUGIN = frozenset({"PluginNotReady", "PluginPaused"})
_LAYOUTS = frozenset({"MigGpuInUse", "UnknownMigLayout"})
_CONFIGS = frozenset({"PluginConfigNotNamed", "NoPluginConfigSelected", "UnknownPluginConfig", "PluginConfigInvalid"})
_TOOLKIT = _PLUGIN | _LAYOUTS
_DRIVER = _TOOLKIT | {"ToolkitNotReady"}
_HIDES: dict[str, frozenset[str]] = {
    # What a node does not report is unknown.
    "NodeNotReady": _DRIVER | _CONFIGS | {"DriverNotReady", "DriverMissing"},
    "NodesNotReady": frozenset({"GpusNotAdvertised", "PluginNotInstalled"}),
    # Each part waits for the one before.
    "DriverMissing": _DRIVER,
    "DriverNotReady": _DRIVER,
    "ToolkitNotReady": _TOOLKIT,
    # Without its GPUs the pod that would hold them is not started.
    "PluginNotReady": frozenset({"MigGpuInUse"}),
    "PluginPaused": frozenset({"MigGpuInUse"}),
    "Xid79": frozenset({"MigGpuInUse"}),
    "Xid48": frozenset({"MigGpuInUse"}),
    # The pod would not use the GPUs if they were free, or there.
    "SelectorMatchesNoNode": frozenset({"GpusInUse"}),
    "RequestLargerThanNodes": frozenset({"GpusInUse"}),
    "GpusNotAdvertised": frozenset({"GpusInUse", "RequestLargerThanNodes"}),
    # The pool has no machine for this pod, so that the cloud is not asked.
    "NoMatchingPool": frozenset({"NoCloudCapacity"}),
}
"""Causes that leave others unknown, or without effect."""
_FOLLOWS = {
    "NoMatchingPool": frozenset({"SelectorMatchesNoNode", "RequestLargerThanNodes"}),
    # The plugin starts again when its configuration changes, and may not be ready yet.
    "PluginNotReady": _CONFIGS,
}
"""Causes that are there only because of others."""


def _pairs(faults: dict[str, Fault]) -> Iterator[tuple[str, str]]:
    for one, other in combinations(faults, 2):
        if not any({one, other} <= same for same in _SAME):
            yield one, other


PAIRS = [*_pairs(NODE), *_pairs(WAITING)]
EVERY = {**NODE, **WAITING}
pytestmark = pytest.mark.skipif(not is_deep(), reason="SHOAL_DEEP=10 runs it")


@pytest.fixture(scope="module")
def causes(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[str, ...]]:
    return in_virtual_time(all_causes(tmp_path_factory.mktemp("pairs"), PAIRS))


async def all_causes(folder: Path, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, ...]]:
    found = {}
    async with broken_cluster(folder) as broken:
        for pair in pairs:
            async with AsyncExitStack() as stack:
                for name in pair:
                    await stack.enter_async_context(EVERY[name].made(broken))
                found[pair] = await causes_of(broken, EVERY[pair[0]])
            await broken.repaired()
    return found


async def causes_of(broken: BrokenCluster, fault: Fault) -> tuple[str, ...]:
    if fault.name:
        return tuple(cause.id for cause in (await broken.doctor(fault.kind, fault.name)).causes)
    await broken.waiting_pod()
    found = await broken.doctor("pod", f"{TEAM}/train")
    await broken.cluster.delete(PODS, "train", namespace=TEAM)
    await broken.cluster.pass_time(40)
    return tuple(cause.id for cause in found.causes)


def missed(pair: tuple[str, str], found: tuple[str, ...]) -> set[str]:
    """Causes of the pair that were not found and that no other cause hides."""
    hidden = {each for cause in found for each in _HIDES.get(cause, ())}
    return {cause for name in pair for cause in EVERY[name].causes} - {*found} - hidden


@pytest.mark.parametrize("pair", PAIRS, ids=" + ".join)
def test_the_causes_of_two_faults_are_both_named(
    pair: tuple[str, str], causes: dict[tuple[str, str], tuple[str, ...]]
) -> None:
    assert missed(pair, causes[pair]) == set()


@pytest.mark.parametrize("pair", PAIRS, ids=" + ".join)
def test_two_faults_give_no_third_cause(pair: tuple[str, str], causes: dict[tuple[str, str], tuple[str, ...]]) -> None:
    own = {cause for name in pair for cause in EVERY[name].causes}
    assert {cause for cause in causes[pair] if cause not in own and not _FOLLOWS.get(cause, frozenset()) & own} == set()
