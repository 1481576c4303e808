"""A cluster that runs is broken, fault by fault and two at once, and the diagnosis names exactly these causes.

All faults are made in one cluster, one after the other; each is undone before the next.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from build.broken_clusters import TEAM, BrokenCluster, broken_cluster
from build.depth import is_deep
from build.doctor_faults import ALONE, SLOW, TWO, Fault
from build.virtual_time import in_virtual_time
from shoal.client.kind import PODS
from shoal.policy.diagnosis.verdicts import DiagnosisResult

CHOSEN = {name: fault for name, fault in {**ALONE, **TWO}.items() if is_deep() or name not in SLOW}


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
        found[""] = await broken.doctor("cluster")
    return found


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
    assert results[""].causes == ()
    assert "3 of 3 nodes have no known problem" in [each.what for each in results[""].ruled_out]


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
