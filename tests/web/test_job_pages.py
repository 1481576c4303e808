"""The pages of one gang, Job and pod: progress, quota and history, for viewers of several rights."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from build.dashboard_facts import node, pod
from build.web_sites import StateFacts, served
from shoal.units.errors import UserError
from shoal.views.dashboard.facts import GroupFacts, PreemptionFacts, WorkloadFacts
from shoal.views.job_history import JobSubject, PodAttempt
from shoal.web.further_pages import FurtherSources
from shoal.web.history_answers import CostAnswer, CostQuestion, JobHistory, NodeHistory, TimelineAnswer
from shoal.web.permitted_history import Namespaces
from shoal.web.viewer import Viewer

MINUTE_MS = 60_000
ATTEMPT = PodAttempt(
    "w-0", "main", 0, 10 * MINUTE_MS, ["NoQuota", "NoDeviceFits"], "n-0", ["GPU-a", "GPU-b"], 10 * MINUTE_MS, None, None
)


class JobHistories:
    """`Histories` that knows one job."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.subjects: list[JobSubject] = []

    async def job(self, subject: JobSubject) -> JobHistory:
        self.subjects.append(subject)
        if self.fault:
            raise UserError(self.fault)
        return JobHistory([ATTEMPT], 7, ["the history begins at noon"])

    async def namespaces(self, window: str) -> list[str]:
        raise NotImplementedError

    async def timeline_namespaces(self, window: str) -> list[str]:
        raise NotImplementedError

    async def node_namespaces(self, name: str) -> list[str]:
        raise NotImplementedError

    async def node(self, name: str, gpus: Sequence[Sequence[str]], seen: Namespaces) -> NodeHistory:
        raise NotImplementedError

    async def temperatures(self) -> dict[str, float]:
        return {}

    async def costs(self, question: CostQuestion, seen: Namespaces) -> CostAnswer:
        raise NotImplementedError

    async def timelines(self, window: str, seen: Namespaces) -> TimelineAnswer:
        raise NotImplementedError


def cluster() -> StateFacts:
    facts = StateFacts()
    facts.state.put_node(node("n-0"))
    facts.state.gangs.put_group(GroupFacts("ml", "ring", 2, "q", ""))
    for number, share in enumerate(("0.5", "0.5", "0.1")):
        said = (
            ("shoal.dev/progress", f"{number}12/900"),
            ("shoal.dev/last-checkpoint", f"2026-01-01T00:00:{10 + number}Z"),
            ("shoal.dev/step-time", "2s"),
            ("shoal.dev/network-share", share),
        )
        started = "2026-01-01T00:00:00Z"
        facts.state.put_pod(
            msgspec.structs.replace(pod(f"w-{number}", "ml", 2), gang="ml/ring", started=started, reported=said)
        )
    facts.state.put_pod(msgspec.structs.replace(pod("plain-0", "ml", 1), job="ml/plain"))
    given = PreemptionFacts("gold", "silver", "InCohortReclamation", "2026-01-01T00:00:20Z")
    facts.state.queues.put_workload(
        WorkloadFacts(
            "ml", "ring", "q", "silver", "", 3, 6.0, "admitted", "", "2026-01-01T00:00:00Z", "2026-01-01T00:00:30Z",
            preemption=given,
        )
    )  # fmt: skip
    facts.state.queues.put_workload(
        WorkloadFacts(
            "ml", "job-plain", "q", "silver", "job/plain", 1, 1.0, "pending", "quota is used", "2026-01-01T00:00:00Z"
        )
    )
    return facts


async def text_of(path: str, histories: JobHistories | None = None, viewer: Viewer | None = None) -> str:
    viewers = None if viewer is None else {"token": viewer}
    headers = {"Authorization": "Bearer token"}
    async with (
        served(cluster(), None, viewers, FurtherSources(histories)) as (url, client),
        client.get(url + path, headers=headers) as answer,
    ):
        return await answer.text()


async def test_a_gang_shows_its_unsaved_work_its_network_share_and_the_pod_that_the_others_wait_for() -> None:
    found = await text_of("/gang/ml/ring", JobHistories())
    assert "32 s since the last checkpoint (3 of 3 pods say)" in found
    assert "37 % of a step, the mean of 3 of 3 pods" in found
    assert "the others wait for ml/w-2" in found
    assert "212/900" in found


async def test_what_a_job_does_not_report_is_unknown_with_the_reason() -> None:
    found = await text_of("/job/ml/plain", JobHistories())
    for words in ("unknown: no running pod has the annotation", "unknown: no running pod reports", "unknown: fewer"):
        assert words in found


async def test_the_history_goes_from_the_queue_to_the_devices() -> None:
    histories = JobHistories()
    found = await text_of("/gang/ml/ring", histories)
    for words in ("NoQuota; NoDeviceFits", "GPU-a, GPU-b", "1970-01-01T00:10:00Z", "10 min", "The newest 1 of 7"):
        assert words in found
    assert histories.subjects == [JobSubject("gang", "ml", "ring")]
    assert "the history begins at noon" in found


async def test_the_quota_of_a_gang_and_of_a_job_is_told_with_its_preemption() -> None:
    found = await text_of("/gang/ml/ring", JobHistories())
    assert "got quota of silver at 2026-01-01T00:00:30Z, after 30 s" in found
    assert "was preempted at 2026-01-01T00:00:20Z for queue gold (InCohortReclamation)" in found
    found = await text_of("/job/ml/plain", JobHistories())
    assert "has no quota of silver, for 42 s" in found
    assert "quota is used" in found


@pytest.mark.parametrize(
    ("histories", "words"),
    [
        pytest.param(None, "There is no history", id="without a history"),
        pytest.param(JobHistories("the file is broken"), "the file is broken", id="with one that cannot be read"),
    ],
)
async def test_a_page_without_history_says_so_and_shows_the_rest(histories: JobHistories | None, words: str) -> None:
    found = await text_of("/gang/ml/ring", histories)
    assert words in found
    assert "the others wait for ml/w-2" in found


@pytest.mark.parametrize("path", ["/gang/ml/ring", "/job/ml/plain", "/job/ml/gone", "/pod/ml/w-0"])
async def test_a_viewer_of_another_namespace_learns_nothing_of_a_job(path: str) -> None:
    histories = JobHistories()
    found = await text_of(path, histories, Viewer(frozenset({"other"})))
    assert histories.subjects == []
    for secret in ("GPU-a", "NoQuota", "w-2", "silver", "quota is used", "212/900"):
        assert secret not in found


async def test_a_job_that_is_gone_from_the_cluster_still_has_its_history() -> None:
    found = await text_of("/pytorchjob/ml/gone", JobHistories())
    assert "Not found" in found
    found = await text_of("/job/ml/gone", JobHistories())
    assert "GPU-a, GPU-b" in found
