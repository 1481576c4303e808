"""A cluster that runs is broken, fault by fault and two at once, and the diagnosis names exactly these causes.

All faults are made in one cluster, one after the other; each is undone before the next.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from build.broken_clusters import TEAM, BrokenCluster, broken_cluster
from build.depth import is_deep
from build.diagnosed_clusters import written_bundle
from build.doctor_faults import ALONE, ENDED, NODE, QUEUED, SLOW, TWO, Fault
from build.virtual_time import in_virtual_time
from shoal.client.kind import PODS
from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster
from shoal.policy.diagnosis.trees import diagnose
from shoal.policy.diagnosis.verdicts import DiagnosisResult, Patient
from shoal.store.diagnosed_objects import read_diagnosed_objects
from shoal.store.snapshot.reading import read_snapshot
from shoal.store.support_bundle.diagnosed_file import read_diagnosed_file

CHOSEN = {name: fault for name, fault in {**ALONE, **TWO}.items() if is_deep() or name not in SLOW}


WHOLE, FOUR, FOUR_IN_A_BUNDLE, FOUR_IN_A_SNAPSHOT = "whole", "four", "four in a bundle", "four in a snapshot"
CLUSTER = Patient("cluster")
AT_ONCE = (
    NODE["an unknown layout"],
    ENDED["too little shared memory"],
    QUEUED["a quota that is too small"],
    NODE["double bit errors"],
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DiagnosisResult]:
    return in_virtual_time(_all_results(tmp_path_factory.mktemp("broken")))


async def _all_results(folder: Path) -> dict[str, DiagnosisResult]:
    found = {}
    async with broken_cluster(folder) as broken:
        for name, fault in CHOSEN.items():
            async with fault.made(broken):
                found[name] = await _result(broken, fault)
            await broken.repaired()
        found[WHOLE] = await broken.doctor("cluster")
        async with AsyncExitStack() as stack:
            for fault in AT_ONCE:
                await stack.enter_async_context(fault.made(broken))
            found |= await _from_files(broken, folder)
    return found


async def _from_files(broken: BrokenCluster, folder: Path) -> dict[str, DiagnosisResult]:
    """The diagnosis of the cluster, of its bundle, and of its snapshot."""
    read, logs = await read_diagnosed_objects(broken.cluster.api), await broken.logs(CLUSTER)
    kept, texts = read_diagnosed_file(written_bundle(folder, read, logs))
    picture = json.loads((await read_snapshot(broken.cluster.api)).to_json())
    of_bundle = diagnose(DiagnosedCluster(kept.objects, kept.complete, unread=kept.unread, logs=texts), CLUSTER)
    of_picture = diagnose(DiagnosedCluster(picture["items"]), CLUSTER)
    assert of_bundle is not None
    assert of_picture is not None
    return {FOUR: await broken.doctor("cluster"), FOUR_IN_A_BUNDLE: of_bundle, FOUR_IN_A_SNAPSHOT: of_picture}


async def _result(broken: BrokenCluster, fault: Fault) -> DiagnosisResult:
    if fault.name:
        return await broken.doctor(fault.kind, fault.name)
    await broken.waiting_pod()
    found = await broken.doctor("pod", f"{TEAM}/train")
    await broken.cluster.delete(PODS, "train", namespace=TEAM)
    await broken.cluster.pass_time(40)
    return found


@pytest.mark.parametrize("name", CHOSEN)
def test_exactly_the_causes_are_named_the_more_severe_first_if_there_are(
    name: str, results: dict[str, DiagnosisResult]
) -> None:
    assert tuple(cause.id for cause in results[name].causes) == CHOSEN[name].causes


@pytest.mark.parametrize("name", [name for name, fault in CHOSEN.items() if fault.excludes])
def test_what_is_broken_is_not_ruled_out_if_there_are(name: str, results: dict[str, DiagnosisResult]) -> None:
    ruled_out = [each.what for each in results[name].ruled_out]
    assert [what for what in ruled_out if CHOSEN[name].excludes in what] == []


@pytest.mark.parametrize("name", CHOSEN)
def test_each_cause_has_evidence_or_a_command_and_a_fix_if_there_are(
    name: str, results: dict[str, DiagnosisResult]
) -> None:
    for cause in results[name].causes:
        assert cause.fix
        assert cause.evidence or cause.commands


def test_a_cluster_that_is_repaired_has_no_cause(results: dict[str, DiagnosisResult]) -> None:
    assert results[WHOLE].causes == ()
    assert "3 of 3 nodes have no known problem" in [each.what for each in results[WHOLE].ruled_out]


def test_four_faults_at_once_are_four_causes_and_a_bundle_says_the_same(results: dict[str, DiagnosisResult]) -> None:
    assert [cause.id for cause in results[FOUR].causes] == [
        "Xid48",
        "UnknownMigLayout",
        "SharedMemoryTooSmall",
        "RequestExceedsQuota",
    ]
    assert results[FOUR_IN_A_BUNDLE] == results[FOUR]


def test_a_snapshot_shows_less_and_says_what_it_cannot_show(results: dict[str, DiagnosisResult]) -> None:
    """It has no Events, logs, messages of conditions and states of containers."""
    found = results[FOUR_IN_A_SNAPSHOT]
    assert [cause.id for cause in found.causes] == ["GpuUnhealthy", "UnknownMigLayout", "RequestExceedsQuota"]
    assert {"its log", "how its containers started and ended"} <= {each.check for each in found.not_run}


def test_a_layout_that_fails_names_the_pod_that_holds_a_gpu(results: dict[str, DiagnosisResult]) -> None:
    (cause,) = results["a layout on a GPU in use"].causes
    assert "clients: pod team/holder-0" in cause.evidence


def test_a_full_cluster_shows_events_use_and_holders(results: dict[str, DiagnosisResult]) -> None:
    (cause,) = results["full nodes"].causes
    assert cause.evidence[:2] == (
        "node gpu-0: 8 of 8 nvidia.com/gpu are in use",
        "node gpu-1: 8 of 8 nvidia.com/gpu are in use",
    )
    assert cause.evidence[2] == "held by team/holder-0 (8 on gpu-0), team/holder-1 (8 on gpu-1)"
    assert cause.evidence[3].startswith("Event ")
