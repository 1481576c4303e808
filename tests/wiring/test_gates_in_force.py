"""Ready is said when the policies are in force, and not a moment before."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.chosen_runs import chosen_run
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.served import Served
from shoal.controllers.gatekeeping.policies import BINDINGS, rendezvous_policy
from shoal.wiring.policies_in_force import wait_for_gates
from shoal.wiring.process_tasks import ProcessTasks


async def waited(cluster: SmallCluster, *, are_at_once: bool) -> float:
    tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
    served = Served(tasks.context("shoal", cluster.api))
    served.when_there(BINDINGS)
    await served.look()
    tasks.informers.of(BINDINGS)
    tasks.start("caches", tasks.informers.run)
    began_s = cluster.clock.seconds()
    await wait_for_gates(tasks, served, chosen_run(None, None, "gatekeeper"), are_at_once=are_at_once)
    await tasks.end()
    return cluster.clock.seconds() - began_s


@pytest.mark.parametrize(("are_at_once", "age_s", "wanted_s"), [(False, 0, 3), (False, 60, 0), (True, 0, 0)])
def test_new_policies_are_given_the_time_that_a_server_takes(
    tmp_path: Path, are_at_once: bool, age_s: float, wanted_s: float
) -> None:
    @virtual
    async def run() -> None:
        async with small_cluster(tmp_path) as cluster:
            await cluster.create(BINDINGS, rendezvous_policy().binding)
            await cluster.pass_time(age_s)
            assert await waited(cluster, are_at_once=are_at_once) == pytest.approx(wanted_s, abs=1.0)

    run()
