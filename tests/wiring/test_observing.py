"""The observer: it reads with its own role alone, sends no write request, and publishes why pods wait."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import msgspec
import pytest

from build.killed_writes import KilledApi
from build.live_schedulers import add_node, pod
from build.queue_admission import add_flavor, add_queue, submit
from build.ruled_clusters import ruled_cluster
from build.virtual_time import virtual
from shoal.cli.observe import observed_objects
from shoal.client.http.access import Access
from shoal.client.kind import PODS
from shoal.client.port import Api, Patch
from shoal.client.refusals import LeaseEndedError
from shoal.data.permissions import OBSERVER
from shoal.data.role_lines import rules
from shoal.install.manifest import manifest
from shoal.install.release import Release
from shoal.install.values.reading import ValuesText, read_values
from shoal.prometheus.exposition import text_of
from shoal.prometheus.registry import Registry
from shoal.store.snapshot.kinds import WANTED
from shoal.telemetry.health import HealthChecks
from shoal.telemetry.metrics_endpoint import MetricsEndpointSettings
from shoal.views.pod_list import PodLine
from shoal.wiring.observed_waits import ObservedObjects, ObservedWaits
from shoal.wiring.observing import Observer, endpoints

USER = "system:serviceaccount:shoal-system:shoal-observer"
ACCESS = Access("https://127.0.0.1:1", "the cluster")
VALUES = read_values([ValuesText("--set", "observe.enabled=true")])
RELEASE = Release("shoal", "shoal-system", "0.2.0")


async def _look(api: Api) -> ObservedObjects:
    return await observed_objects(api, ACCESS)


def test_the_account_of_the_observer_has_no_verb_that_writes() -> None:
    objects = manifest(RELEASE, VALUES)
    granted = {verb for one in objects for rule in one.get("rules", ()) for verb in rule["verbs"]}
    assert granted == {"get", "list"}
    roles = {(one["kind"], one["roleRef"]["name"]) for one in objects if one["kind"].endswith("Binding")}
    assert roles == {("ClusterRoleBinding", "shoal-observer")}
    assert not [rule for rule in rules(OBSERVER) if "secrets" in rule.get("resources", ())]


def test_every_kind_of_a_snapshot_may_be_listed() -> None:
    may = {
        (group, resource)
        for rule in rules(OBSERVER)
        if "list" in rule["verbs"] and "resourceNames" not in rule
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert {(kind.group, kind.plural) for kind in WANTED} <= may


@virtual
async def test_waiting_pods_are_explained_with_the_role_of_the_observer_and_no_write(tmp_path: Path) -> None:
    async with ruled_cluster(tmp_path) as ruled:
        await ruled.apply([one for one in manifest(RELEASE, VALUES) if "rbac" in one["apiVersion"]])
        await add_node(ruled.cluster, "n1", gpus=8)
        await ruled.cluster.create(PODS, pod("big", gpus=16))
        counted = KilledApi(ruled.way_in(USER))
        registry = Registry()
        waits = ObservedWaits(registry)
        assert waits.fault
        pause_s = await Observer(counted, ruled.cluster.clock, _look, waits, 60.0).read_once()
        assert (counted.writes, ruled.refused, waits.fault) == (0, [], "")
        assert pause_s >= 60.0
        document = msgspec.json.decode(waits.document())
        (line,) = document["pods"]
        assert (line["pod"], document["waitingPods"]) == ("default/big", 1)
        assert line["code"]
        text = text_of(registry.read()).decode()
        sample = f'shoal_observed_waiting_pods{{namespace="default",queue="",reason="{line["code"]}"}} 1'
        assert sample in text
        assert "shoal_observed_waiting_gpus" in text


@virtual
async def test_a_suspended_job_without_pods_is_explained_by_its_workload(tmp_path: Path) -> None:
    async with ruled_cluster(tmp_path, "kueue") as ruled:
        await ruled.apply([one for one in manifest(RELEASE, VALUES) if "rbac" in one["apiVersion"]])
        await add_flavor(ruled.cluster)
        await add_queue(ruled.cluster, "cq", cpu="1")
        await submit(ruled.cluster, "job-a", queue="cq", cpu="2")
        counted = KilledApi(ruled.way_in(USER))
        registry = Registry()
        waits = ObservedWaits(registry)
        await Observer(counted, ruled.cluster.clock, _look, waits, 60.0).read_once()
        assert (counted.writes, ruled.refused, waits.fault) == (0, [], "")
        document = msgspec.json.decode(waits.document())
        (line,) = document["workloads"]
        assert (line["workload"], line["queue"], document["waitingWorkloads"]) == ("default/job-a", "default/cq", 1)
        text = text_of(registry.read()).decode()
        sample = f'shoal_observed_waiting_workloads{{namespace="default",queue="cq",reason="{line["code"]}"}} 1'
        assert sample in text


@virtual
async def test_a_write_of_the_observer_does_not_leave_the_process(tmp_path: Path) -> None:
    async with ruled_cluster(tmp_path) as ruled:
        counted = KilledApi(ruled.cluster.api)

        async def writes(api: Api) -> ObservedObjects:
            await api.patch(PODS, "default", "a", Patch("merge", {}))
            return ObservedObjects()

        waits = ObservedWaits(Registry())
        observer = Observer(counted, ruled.cluster.clock, writes, waits, 60.0)
        await observer.read_once()
        assert counted.writes == 0
        assert waits.fault == str(LeaseEndedError())


async def test_a_failed_reading_keeps_the_former_answer() -> None:
    registry = Registry()
    waits = ObservedWaits(registry)
    pod_line = PodLine("a/b", "waits", 1.0, {}, "", [], "q", "NotEnoughGpus", "words")
    waits.publish(ObservedObjects((pod_line,)), 5.0, 0.1)
    waits.failed("the server does not answer")
    assert waits.fault == ""
    text = text_of(registry.read()).decode()
    assert 'shoal_observed_waiting_pods{namespace="a",queue="q",reason="NotEnoughGpus"} 1' in text
    assert "shoal_observed_failures_total 1" in text
    assert "shoal_observed_timestamp_seconds 5" in text


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])  # noqa: S104 - what other machines reach
async def test_names_are_served_on_a_loopback_address_alone(host: str) -> None:
    registry = Registry()
    waits = ObservedWaits(registry)
    line = PodLine("tenant/secret", "waits", 1.0, {}, "", [], "q", "NotEnoughGpus", "words")
    waits.publish(ObservedObjects((line,)), 5.0, 0.1)
    made = endpoints(registry, HealthChecks({}, {}), MetricsEndpointSettings(host, 0), waits)
    answers = []
    async with aiohttp.ClientSession() as client:
        for endpoint in made:
            await endpoint.start()
            try:
                port = endpoint.address.rpartition(":")[2]
                async with client.get(f"http://127.0.0.1:{port}/waits") as answer:
                    answers.append((endpoint.address.rpartition(":")[0], await answer.json()))
            finally:
                await endpoint.close()
    assert all(document["waitingPods"] == 1 for _, document in answers)
    named = [address for address, document in answers if "secret" in str(document)]
    assert named == ["127.0.0.1"]
    assert [address for address, _ in answers] == ([host] if host == "127.0.0.1" else [host, "127.0.0.1"])
