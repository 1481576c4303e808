"""A cluster that has Shoal in it: it works at once where only a former tasks of its own holds the lease, and stands by
where somebody else does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from build.candidates import Stage
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.api.run_configuration import IN_USE, RunConfiguration
from shoal.client.kind import LEASES
from shoal.client.lease_lock import Lock
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.standby import check_alone, run_with_lease

OWN = RunConfiguration(scheduler_names=("shoal", "default-scheduler"))
RULES = OWN.leader_election


@asynccontextmanager
async def begun(cluster: SmallCluster, stage: Stage) -> AsyncIterator[None]:
    """A `shoal up` beside that server."""
    tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)

    async def at_once() -> None:
        tasks.start("work", lambda: stage.work("at once"))

    try:
        await run_with_lease(tasks, cluster.api, OWN, at_once, lambda: stage.work("later"))
        yield
    finally:
        await tasks.end()


async def held_by(cluster: SmallCluster, holder: str) -> None:
    """Renewed just now, and not given back."""
    now = cluster.clock.micro_text()
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": now, "renewTime": now}
    await cluster.create(LEASES, {"metadata": {"name": RULES.resource_name}, "spec": spec}, RULES.resource_namespace)


async def renew(cluster: SmallCluster) -> None:
    while True:
        await cluster.clock.sleep(2)
        body = {"spec": {"renewTime": cluster.clock.micro_text()}}
        await cluster.patch(LEASES, RULES.resource_name, body, namespace=RULES.resource_namespace)


async def holder_of(cluster: SmallCluster) -> str:
    return str((await cluster.get(LEASES, RULES.resource_name, RULES.resource_namespace))["spec"]["holderIdentity"])


@virtual
async def test_the_lease_of_a_killed_predecessor_is_taken_over_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with small_cluster(tmp_path) as cluster:
        await held_by(cluster, "shoal-up_dead")
        async with begun(cluster, stage := Stage()):
            await cluster.pass_time(1)
            assert stage.working == ["at once"]
            assert (await holder_of(cluster)).startswith("shoal-up_")
            assert await holder_of(cluster) != "shoal-up_dead"
            assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


@virtual
async def test_while_another_process_holds_the_lease_nothing_is_done_and_its_end_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with small_cluster(tmp_path) as cluster:
        await held_by(cluster, "vm_1")
        renewing = asyncio.ensure_future(renew(cluster))
        async with begun(cluster, stage := Stage()):
            await cluster.pass_time(300)
            assert (stage.most, await holder_of(cluster)) == (0, "vm_1")
            assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == [
                "standing by: vm_1 holds the lease kube-system/shoal and is active"
            ]
            renewing.cancel()
            await cluster.until(lambda: stage.working == ["later"], 22)


@virtual
async def test_one_that_works_and_finds_its_lease_taken_does_not_say_that_it_stands_by(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with small_cluster(tmp_path) as cluster:
        async with begun(cluster, stage := Stage()):
            await cluster.pass_time(1)
            thief = {"spec": {"holderIdentity": "vm_1"}}
            await cluster.patch(LEASES, RULES.resource_name, thief, namespace=RULES.resource_namespace)
            await cluster.pass_time(5)
            assert stage.working == ["at once"]
        said = [one.getMessage() for one in caplog.records]
        assert not [one for one in said if "stands by" in one]
        assert [one for one in said if "vm_1 holds the lease kube-system/shoal: two schedulers of one name" in one]


ALONE: dict[str, tuple[tuple[str, ...], str]] = {
    "a scheduler beside another": (
        ("scheduler", "advisor"),
        "two schedulers of one name work against each other; end the other one, or run this one with --leader-elect",
    ),
    "parts that place no pods": (
        ("advisor", "gatekeeper"),
        "if it runs advisor or gatekeeper too, both change the same objects; end one of them then",
    ),
}


@pytest.mark.parametrize(("parts", "words"), ALONE.values(), ids=ALONE)
def test_a_process_without_lease_warns_of_the_work_that_it_does_twice(
    parts: tuple[str, ...], words: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @virtual
    async def warned() -> None:
        async with small_cluster(tmp_path) as cluster:
            await held_by(cluster, "vm_1")
            await check_alone(cluster.api, Lock(RULES.resource_namespace, RULES.resource_name, "vm_2"), parts)

    warned()
    said = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    assert said == [f"vm_1 holds the lease kube-system/shoal: {words}"]


@virtual
async def test_the_lease_says_with_which_settings_the_cluster_decides(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, begun(cluster, Stage()):
        await cluster.pass_time(1)
        lease = await cluster.get(LEASES, RULES.resource_name, RULES.resource_namespace)
        written = msgspec.json.decode(lease["metadata"]["annotations"][IN_USE], type=RunConfiguration)
        assert written == OWN.deciding()
