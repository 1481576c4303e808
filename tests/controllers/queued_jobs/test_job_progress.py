"""The progress of a job by its own status, as the job controller writes it step by step."""

from __future__ import annotations

import pytest

from shoal.client.item import Obj
from shoal.controllers.queued_jobs.job_progress import batch_job
from shoal.store.queues.job_parts import PodPart

_DONE, _UNCOUNTED = {"succeeded": 2}, {"uncountedTerminatedPods": {"succeeded": ["u1", "u2"]}}


@pytest.mark.parametrize(
    ("status", "is_ready"),
    [
        pytest.param({"active": 2, "ready": 2}, True, id="both run"),
        pytest.param({"active": 2, "ready": 1}, False, id="one is not ready"),
        pytest.param({"ready": 0, **_UNCOUNTED}, True, id="both have succeeded and are not counted yet"),
        pytest.param({"ready": 0, **_DONE, "uncountedTerminatedPods": {}}, True, id="both are counted"),
        pytest.param({"ready": 1, "uncountedTerminatedPods": {"failed": ["u1"]}}, False, id="one has failed"),
    ],
)
def test_pods_that_succeeded_count_as_ready(status: Obj, is_ready: bool) -> None:
    """Between the end of the pods and their count a job that succeeded was told to have lost a pod, for ever."""
    job = {"spec": {"parallelism": 2, "completions": 2}, "status": status}
    assert batch_job(job, [PodPart("main", 2, {}, ("spec", "template"))]).is_ready is is_ready
