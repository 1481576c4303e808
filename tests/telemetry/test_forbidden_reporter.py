"""What RBAC refuses is reported once: in the log, and as an Event on the object where people look for Shoal."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import LEASES
from shoal.client.refusals import ForbiddenError
from shoal.telemetry.forbidden import ForbiddenReporter, advice_line


def _refused(verb: str = "list", what: str = 'resource "nodes" in API group "" at the cluster scope') -> ForbiddenError:
    return ForbiddenError(f'it is forbidden: User "ann" cannot {verb} {what}')


@virtual
async def test_the_same_refusal_is_reported_once_and_recorded_on_the_lease(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with small_cluster(tmp_path) as cluster:
        meta = {"namespace": "kube-system", "name": "shoal"}
        lease = await cluster.create(LEASES, {"metadata": meta, "spec": {}}, "kube-system")
        context = cluster.context("shoal")
        about = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": lease["metadata"]}
        reporter = ForbiddenReporter(context.events, about)
        cluster.start(lambda _: _EventSource(context))
        with caplog.at_level(logging.WARNING, "shoal"):
            assert [reporter.report(_refused()) for _ in range(3)] == [True, False, False]
            assert reporter.report(_refused("watch"))
            await context.events.settled()
        assert len([one for one in caplog.records if one.name == "shoal"]) == 2
        events = await cluster.events("shoal")
        assert [(one["reason"], one["type"], one["count"]) for one in events] == [("Forbidden", "Warning", 1)] * 2
        assert events[0]["message"].startswith("RBAC does not let ann list nodes: the missing rule is ")
        reporter.allowed("list", "", "nodes")
        assert len(reporter) == 1
        assert reporter.report(_refused()), "taken away again, it is news again"


def test_refusals_of_a_server_that_has_not_read_its_roles_yet_are_not_reported() -> None:
    reporter = ForbiddenReporter()
    assert reporter.report(_refused("watch"), 99.0)
    reporter.unanswered(100.0)
    assert [reporter.report(_refused(), now_s) for now_s in (100.0, 105.0, 114.9)] == [False] * 3
    reporter.allowed("list", "", "pods")
    assert reporter.report(_refused(), 115.1), "what is still refused then is reported, whatever else is allowed"


class _EventSource:
    """Writes the events of a context."""

    name = "events"

    def __init__(self, context: object) -> None:
        self._context = context

    async def run(self) -> None:
        await self._context.events.run()  # type: ignore[attr-defined]


def test_what_a_quota_refused_is_not_rbacs() -> None:
    assert not ForbiddenReporter().report(ForbiddenError('pods "a" is forbidden: exceeded quota: q'))


@pytest.mark.parametrize(
    ("verb", "what", "words"),
    [
        (
            "create",
            'resource "pods/binding" in API group "" in the namespace "team-a"',
            (
                "create pods/binding in namespace team-a: the missing rule is "
                '{apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]}'
            ),
        ),
        (
            "watch",
            'resource "workloads" in API group "kueue.x-k8s.io" at the cluster scope',
            (
                "watch workloads.kueue.x-k8s.io: the missing rule is "
                '{apiGroups: ["kueue.x-k8s.io"], resources: ["workloads"], verbs: ["watch"]}'
            ),
        ),
        (
            "get",
            'path "/metrics"',
            'get /metrics: the missing rule is {nonResourceURLs: ["/metrics"], verbs: ["get"]}',
        ),
    ],
)
def test_the_rule_is_told_as_it_would_be_written(verb: str, what: str, words: str) -> None:
    line = advice_line(_refused(verb, what))
    assert line == f"RBAC does not let ann {words}; all that shoal run needs: shoal permissions | kubectl apply -f -"
    assert "\n" not in line
