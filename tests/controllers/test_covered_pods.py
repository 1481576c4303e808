"""Which pods a Workload that has its quota covers."""

from __future__ import annotations

import msgspec
import pytest

from shoal.api.conditions import Condition
from shoal.api.kueue import Workload
from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.controllers.scheduling_loop.budget_guard import covers
from shoal.store.watched.pod_views import PodView

POD = PodView("ns/p", "ns", "p", "uid-p", 1, "shoal", workload="ns/w")
JOB, SET = ("ns", "Job", "set-0"), ("ns", "JobSet", "set")


def workload(kind: str, name: str, uid: str = "", *conditions: str) -> Workload:
    found = Workload(metadata=ObjectMeta(owner_references=(OwnerReference(kind=kind, name=name, uid=uid),)))
    written = tuple(Condition(type=one, status="True") for one in conditions)
    return msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, conditions=written))


@pytest.mark.parametrize(
    ("kind", "name", "uid", "owners", "is_covered"),
    [
        pytest.param("Job", "set-0", "", (JOB, SET), True, id="the controller of the pod"),
        pytest.param("JobSet", "set", "", (JOB, SET), True, id="the controller of that one"),
        pytest.param("Pod", "p", "uid-p", (), True, id="the pod itself"),
        pytest.param("Pod", "p", "uid-q", (), False, id="an earlier pod of the name"),
        pytest.param("RayJob", "r", "", (("ns", "RayCluster", "r-1"),), True, id="an owner that is not watched"),
        pytest.param("RayJob", "r", "", (), False, id="a pod without an owner"),
        pytest.param("Job", "other", "", (JOB, SET), False, id="another job"),
    ],
)
def test_a_workload_covers_the_pods_of_its_owner(
    kind: str, name: str, uid: str, owners: tuple[tuple[str, str, str], ...], is_covered: bool
) -> None:
    assert covers(workload(kind, name, uid, "QuotaReserved"), POD, owners) == is_covered


def test_a_workload_without_quota_and_one_that_has_finished_cover_no_pod() -> None:
    assert not covers(workload("Job", "set-0"), POD, (JOB,))
    assert not covers(workload("Job", "set-0", "", "QuotaReserved", "Finished"), POD, (JOB,))
