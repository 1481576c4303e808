"""Jobs and CronJobs by kubectl: indexes that fail, completion that is waited for, schedules on a fast clock."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

from build.kubectl_runs import Kubectl, Obj
from build.living_cluster import conditions, indexes, job, patch, pods, tell, until, wait

INDEX = "batch.kubernetes.io/job-completion-index"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def test_a_job_on_gpus_completes_and_its_log_is_read(kubectl: Kubectl) -> None:
    given = job("train", {"run-for": "200ms", "log": "loss 0.25"}, gpus=2, completions=3, parallelism=3)
    kubectl("create", "-f-", given=given)
    wait(kubectl, "job/train", "condition=complete")
    status = kubectl.get("job", "train")["status"]
    assert (status["succeeded"], status.get("failed", 0), "completionTime" in status) == (3, 0, True)
    assert "loss 0.25" in kubectl("logs", "job/train")
    assert kubectl("get", "job", "train").splitlines()[1].split()[1:3] == ["Complete", "3/3"]


def test_an_index_fails_alone_and_the_others_end_well(kubectl: Kubectl) -> None:
    """Only one pod is told to fail: the annotation of a running pod counts, too."""
    spec: Obj = {"completions": 5, "parallelism": 5, "completionMode": "Indexed", "backoffLimitPerIndex": 0}
    kubectl("create", "-f-", given=job("sweep", {"run-for": "1h"}, gpus=1, **spec))
    until(lambda: len(pods(kubectl)) == 5)
    tell(kubectl, f"pod --selector={INDEX}=1", "exit-code.main=3")
    tell(kubectl, "pod --all", "run-for=1ms")
    wait(kubectl, "job/sweep", "condition=failed")
    found = kubectl.get("job", "sweep")
    status = found["status"]
    assert (status["failedIndexes"], status["completedIndexes"], status["succeeded"]) == ("1", "0,2-4", 4)
    assert conditions(found)["Failed"]["reason"] == "FailedIndexes"
    failed = next(one for one in pods(kubectl) if one["metadata"]["annotations"][INDEX] == "1")
    assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_an_index_is_tried_again_as_often_as_its_limit_allows(fast: Kubectl) -> None:
    limits = {"backoffLimitPerIndex": 1, "maxFailedIndexes": 2}
    spec: Obj = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", **limits}
    fast("create", "-f-", given=job("sweep", {"run-for": "5s", "exit-code.main": "7"}, **spec))
    wait(fast, "job/sweep", "condition=failed")
    found = fast.get("job", "sweep")
    assert (found["status"]["failedIndexes"], found["status"]["failed"]) == ("0,1", 4)
    assert indexes(pods(fast)) == [0, 0, 1, 1]


def test_a_job_beyond_its_limit_fails_with_the_reason(fast: Kubectl) -> None:
    fast("create", "-f-", given=job("broken", {"run-for": "1s", "exit-code": "1"}, backoffLimit=1))
    wait(fast, "job/broken", "condition=failed")
    failed = conditions(fast.get("job", "broken"))["Failed"]
    assert (failed["reason"], failed["message"]) == (
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    )


def test_a_suspended_job_has_no_pods_until_it_is_resumed(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=job("later", {"run-for": "200ms"}, suspend=True))
    wait(kubectl, "job/later", "condition=suspended")
    assert pods(kubectl) == []
    kubectl("patch", "job/later", "--type=merge", "--patch", patch({"spec": {"suspend": False}}))
    wait(kubectl, "job/later", "condition=complete")


def test_a_finished_job_goes_when_its_time_is_up(fast: Kubectl) -> None:
    fast("create", "-f-", given=job("brief", {"run-for": "1s"}, ttlSecondsAfterFinished=60))
    wait(fast, "job/brief", "condition=complete")
    wait(fast, "job/brief", "delete")
    wait(fast, "pod", "delete", "--selector=job-name=brief")


def cron_job(policy: str, run_for: str) -> Obj:
    template = job("", {"run-for": run_for})["spec"]["template"]
    schedule = {"schedule": "* * * * *", "concurrencyPolicy": policy, "successfulJobsHistoryLimit": 3}
    spec = {**schedule, "jobTemplate": {"spec": {"template": template}}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": spec}


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def jobs(kubectl: Kubectl) -> list[Obj]:
    found: list[Obj] = kubectl.get("jobs")["items"]
    return sorted(found, key=lambda one: str(one["metadata"]["creationTimestamp"]))


def completed(kubectl: Kubectl) -> list[Obj]:
    return [one for one in jobs(kubectl) if "completionTime" in one["status"]]


def test_a_cron_job_runs_every_minute_of_the_clusters_own_clock(fast: Kubectl) -> None:
    fast("create", "-f-", given=cron_job("Allow", "5s"))
    ended = until(lambda: found if len(found := completed(fast)) >= 3 else [])
    meant = [moment(one["metadata"]["annotations"][SCHEDULED]) for one in ended]
    # A machine with much else to do may miss a minute, which is a second here.
    assert all(a < b and (b - a).total_seconds() % 60 == 0 for a, b in pairwise(meant)), meant
    starts = [moment(one["status"]["startTime"]) for one in ended]
    assert all(a <= b for a, b in zip(meant, starts, strict=True)), starts
    fast("patch", "cronjob/nightly", "--type=merge", "--patch", patch({"spec": {"suspend": True}}))
    listed = fast("get", "cronjob", "nightly").splitlines()[1].split()
    assert listed[:8] == ["nightly", "*", "*", "*", "*", "*", "<none>", "True"]


def test_a_cron_job_that_forbids_it_never_has_two_runs_at_once(fast: Kubectl) -> None:
    fast("create", "-f-", given=cron_job("Forbid", "80s"))
    ended = until(lambda: found if len(found := completed(fast)) >= 2 else [])
    for earlier, later in pairwise(ended):
        assert moment(earlier["status"]["completionTime"]) <= moment(later["status"]["startTime"])
    fast("delete", "cronjob", "nightly")


def test_a_cron_job_that_replaces_ends_the_run_before(fast: Kubectl) -> None:
    fast("create", "-f-", given=cron_job("Replace", "1h"))
    first = until(lambda: fast.names("jobs"))[0]
    wait(fast, first, "delete")
    assert until(lambda: fast.names("jobs")) != [first]
    fast("delete", "cronjob", "nightly")
    wait(fast, "job --all", "delete")


def test_a_cron_job_is_run_by_hand(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=cron_job("Allow", "100ms"))
    kubectl("create", "job", "now", "--from=cronjob/nightly")
    wait(kubectl, "job/now", "condition=complete")
