"""Jobs whose pods fail: limits, limits per index, rules for failures and for success, deadlines."""

from __future__ import annotations

from typing import Any

import pytest

from build.api_objects import NO_SCHEDULER, container
from build.cluster_api import Api, Obj
from build.live_waits import conditions, create, is_true, name_of, until, until_pods, until_said
from build.played_pods import end, run

pytestmark = pytest.mark.needs("controllers")
INDEX = "batch.kubernetes.io/job-completion-index"


async def make(api: Api, **spec: Any) -> None:
    held = {"schedulerName": NO_SCHEDULER, "restartPolicy": "Never", "containers": [container()]}
    whole = {"template": {"spec": held}, **spec}
    await create(api, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": whole}, "jobs")


def at(api: Api) -> str:
    return api.group("batch/v1", "jobs", "train")


async def by_index(api: Api, number: int) -> dict[str, str]:
    """The names of the pods."""
    return {pod["metadata"]["annotations"][INDEX]: name_of(pod) for pod in await until_pods(api, number)}


async def failed(api: Api) -> Obj:
    found = await until(api, at(api), lambda one: is_true(one, "Failed"))
    assert conditions(found)["FailureTarget"] == conditions(found)["Failed"]
    assert "completionTime" not in found["status"]
    assert "active" not in found["status"]
    return found


async def test_a_job_that_may_not_fail_fails_at_once_and_stops_the_others(api: Api) -> None:
    await make(api, parallelism=2, completions=2, backoffLimit=0)
    first, second = await until_pods(api, 2)
    await run(api, name_of(second))
    await end(api, name_of(first), 1)
    words = ("True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    found = await failed(api)
    assert conditions(found)["Failed"] == words
    # The pod that was stopped counts as failed too.
    assert found["status"]["failed"] == 2
    (event,) = await until_said(api, "train", "BackoffLimitExceeded")
    assert (event["type"], event["message"]) == ("Warning", words[2])


async def test_one_index_fails_and_the_others_go_on(api: Api) -> None:
    await make(api, parallelism=3, completions=3, completionMode="Indexed", backoffLimitPerIndex=0)
    pods = await by_index(api, 3)
    await end(api, pods["1"], 1)
    some = await until(api, at(api), lambda one: one["status"].get("failedIndexes") == "1")
    assert "FailureTarget" not in conditions(some)
    await end(api, pods["0"])
    await end(api, pods["2"])
    done = await failed(api)
    assert conditions(done)["Failed"] == ("True", "FailedIndexes", "Job has failed indexes")
    assert (done["status"]["completedIndexes"], done["status"]["succeeded"], done["status"]["failed"]) == ("0,2", 2, 1)


async def test_more_failed_indexes_than_may_be_end_the_job(api: Api) -> None:
    limits = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1}
    await make(api, parallelism=4, completions=4, completionMode="Indexed", **limits)
    pods = await by_index(api, 4)
    await end(api, pods["0"], 1)
    await end(api, pods["3"], 1)
    words = ("True", "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes")
    assert conditions(await failed(api))["Failed"] == words


async def test_a_rule_about_an_exit_code_fails_the_job(api: Api) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}}
    await make(api, backoffLimit=6, podFailurePolicy={"rules": [rule]})
    (pod,) = await until_pods(api, 1)
    await end(api, name_of(pod), 42)
    said = f"Container main for pod {api.namespace}/{name_of(pod)} failed with exit code 42"
    words = f"{said} matching FailJob rule at index 0"
    assert conditions(await failed(api))["Failed"] == ("True", "PodFailurePolicy", words)


async def test_a_rule_about_a_condition_fails_the_job(api: Api) -> None:
    rule = {"action": "FailJob", "onPodConditions": [{"type": "example.com/Broken"}]}
    await make(api, podFailurePolicy={"rules": [rule]})
    (pod,) = await until_pods(api, 1)
    await end(api, name_of(pod), 1, {"type": "example.com/Broken", "status": "True"})
    words = f"Pod {api.namespace}/{name_of(pod)} has condition example.com/Broken matching FailJob rule at index 0"
    assert conditions(await failed(api))["Failed"] == ("True", "PodFailurePolicy", words)


async def test_a_disruption_that_is_ignored_does_not_count(api: Api) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    await make(api, backoffLimit=0, podFailurePolicy={"rules": [rule]})
    (pod,) = await until_pods(api, 1)
    await end(api, name_of(pod), 137, {"type": "DisruptionTarget", "status": "True"})
    # From then on it has been counted, or not.
    await until(api, api.core("pods", name_of(pod)), lambda one: "finalizers" not in one["metadata"])
    found = (await api.get(at(api))).ok()
    assert "failed" not in found["status"]
    assert "FailureTarget" not in conditions(found)


async def test_a_rule_gives_up_one_index(api: Api) -> None:
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [7]}}
    limits: Obj = {"backoffLimitPerIndex": 5, "podFailurePolicy": {"rules": [rule]}}
    await make(api, parallelism=2, completions=2, completionMode="Indexed", **limits)
    pods = await by_index(api, 2)
    await end(api, pods["0"], 7)
    await until(api, at(api), lambda one: one["status"].get("failedIndexes") == "0")
    await end(api, pods["1"])
    assert conditions(await failed(api))["Failed"][1] == "FailedIndexes"


async def test_a_leader_that_succeeds_makes_the_job_a_success(api: Api) -> None:
    rules = [{"succeededIndexes": "0"}]
    await make(api, parallelism=3, completions=3, completionMode="Indexed", successPolicy={"rules": rules})
    pods = await by_index(api, 3)
    await run(api, pods["1"])
    await end(api, pods["0"])
    done = await until(api, at(api), lambda one: is_true(one, "Complete"))
    words = ("True", "SuccessPolicy", "Matched rules at index 0")
    assert conditions(done) == {"SuccessCriteriaMet": words, "Complete": words}
    assert (done["status"]["succeeded"], done["status"]["completedIndexes"]) == (1, "0")
    await until_pods(api, 1)


async def test_a_job_that_takes_too_long_fails(api: Api) -> None:
    await make(api, parallelism=2, completions=2, activeDeadlineSeconds=1)
    found = await failed(api)
    words = ("True", "DeadlineExceeded", "Job was active longer than specified deadline")
    assert conditions(found)["Failed"] == words
    await until_pods(api, 0)
