"""`shoal up` as it is usually started: Shoal places pods and admits jobs from the moment it says that it is ready."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

import pytest

from build.kubectl_runs import Kubectl
from build.living_cluster import events, job, living, pod, pods, until, wait
from build.shoal_process import shoal_process

QUEUE = "kueue.x-k8s.io/queue-name"


@pytest.mark.parametrize(
    "options",
    [("--memory",), ("--memory", "--processes"), ("--memory", "--authorization", "rbac")],
    ids=["one process", "several processes", "with authorization"],
)
def test_it_places_pods_and_holds_jobs_from_the_start(
    options: tuple[str, ...], tmp_path: Path, kubectl_home: Path
) -> None:
    with living(tmp_path, "1xp5.48xlarge", *options) as server:
        kubectl = Kubectl(server.kubeconfig, kubectl_home)
        queued = job("queued", {"run-for": "1h"}, gpus=1)
        queued["metadata"]["labels"] = {QUEUE: "team"}
        kubectl("create", "-f-", given=[queued, pod("free", gpus=1)])
        # Nobody admits it, as nobody made its queue; it was never started either.
        assert kubectl.get("job", "queued")["spec"]["suspend"] is True
        wait(kubectl, "pod/free", "condition=ready")
        told = until(lambda: said if "Scheduled" in (said := events(kubectl, "free")) else {})
        assert told["Scheduled"] == "Successfully assigned default/free to p5-48xlarge-0"
        assert "FailedScheduling" not in told
        assert [one["metadata"]["name"] for one in pods(kubectl)] == ["free"]
        until(lambda: kubectl.names("workloads"))
        with shoal_process(server.kubeconfig, "run") as second:
            until(lambda: "standing by: shoal-up_" in second.said)


def test_the_figures_of_its_queues_stand_where_those_of_its_nodes_do(tmp_path: Path, kubectl_home: Path) -> None:
    with living(tmp_path, "1xp5.48xlarge", "--memory", "--metrics-port", "0") as server:
        kubectl = Kubectl(server.kubeconfig, kubectl_home)
        queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "cq"}, "spec": {}}
        kubectl("create", "-f-", given=[queue, pod("free", gpus=1)])
        wait(kubectl, "pod/free", "condition=ready")
        where = kubectl.get("node", "p5-48xlarge-0")["metadata"]["annotations"]["shoal.dev/metrics"]

        def told() -> str:
            with urlopen(f"{where.partition('/nodes/')[0]}/metrics") as answer:  # noqa: S310 - our own
                return str(answer.read().decode())

        until(lambda: 'kueue_pending_workloads{cluster_queue="cq"' in told())
        assert 'shoal_fleet_nodes{reachable="true"} 1' in told()
        assert 'scheduler_schedule_attempts_total{result="scheduled",profile="shoal"} 1' in told()


def test_the_simple_scheduler_has_neither_queues_nor_gangs(tmp_path: Path, kubectl_home: Path) -> None:
    with living(tmp_path, "1xg5.12xlarge", "--memory", "--scheduler", "simple") as server:
        kubectl = Kubectl(server.kubeconfig, kubectl_home)
        queued = job("queued", {"run-for": "1h"}, gpus=1)
        queued["metadata"]["labels"] = {QUEUE: "team"}
        kubectl("create", "-f-", given=[queued, pod("other", gpus=1, schedulerName="shoal")])
        until(lambda: pods(kubectl, "job-name=queued"))
        wait(kubectl, "pod --selector=job-name=queued", "condition=ready")
        assert "nodeName" not in kubectl.get("pod", "other")["spec"]
