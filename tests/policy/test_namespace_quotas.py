"""A workload is refused only if none of its pods can ever be created; one that runs in parts is warned about."""

from __future__ import annotations

from typing import Any

import pytest

from build.manifests import job, replicas, thing
from shoal.policy.admission_rules.checks import findings
from shoal.policy.admission_rules.modes import RuleModes
from shoal.policy.object_set import ObjectSet

Obj = dict[str, Any]


def _quota(gpus: int) -> Obj:
    return thing("v1", "ResourceQuota", "team/gpus", spec={"hard": {"requests.nvidia.com/gpu": str(gpus)}})


def _found(obj: Obj, quota: Obj) -> list[tuple[str, str, str]]:
    """Where all rules are enforced."""
    found = findings(obj, ObjectSet([quota]), RuleModes("enforce"))
    return [(one.rule, one.mode, one.message) for one in found if "OverQuota" in one.rule]


@pytest.mark.parametrize(
    ("obj", "quota"),
    [(job("team/train", 4, 2), 4), (replicas("Deployment", "team/serve", 3, 1), 2)],
    ids=["a Job whose pods run one after the other", "a Deployment of which some pods run"],
)
def test_a_workload_of_which_some_pods_fit_is_warned_about_and_not_refused(obj: Obj, quota: int) -> None:
    ((rule, mode, message),) = _found(obj, _quota(quota))
    assert (rule, mode) == ("PartlyOverQuota", "warn")
    assert message.endswith(f"the ResourceQuota gpus allows {quota} in all: 2 run at a time")


@pytest.mark.parametrize("pods", [1, 4])
def test_a_workload_whose_single_pods_exceed_the_quota_is_refused(pods: int) -> None:
    ((rule, mode, message),) = _found(job("team/train", pods, 8), _quota(4))
    assert (rule, mode) == ("OverQuota", "enforce")
    assert message == "8 of nvidia.com/gpu, and the ResourceQuota gpus allows 4 in all"


@pytest.mark.parametrize("counts", [{"parallelism": 4, "completions": 2}, {"parallelism": None, "completions": 4}])
def test_a_job_needs_quota_only_for_the_pods_that_run_at_the_same_time(counts: Obj) -> None:
    obj = job("team/train", 1, 2)
    obj["spec"] |= counts
    assert _found(obj, _quota(4)) == []


def test_a_workload_that_fits_has_no_finding() -> None:
    assert _found(job("team/train", 2, 2), _quota(4)) == []
