"""What the admission rules know of a cluster: objects that are missing, in the caches of the webhook."""

from __future__ import annotations

import asyncio
from pathlib import Path

from build.budget_reports import NAMESPACE, write_budgets
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import CONFIG_MAPS, SERVICE_ACCOUNTS
from shoal.client.served import Served
from shoal.controllers.gatekeeping.rule_lookups import RuleLookups
from shoal.policy import kinds


@virtual
async def test_config_maps_and_service_accounts_are_known_and_secrets_never_count_as_missing(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        context = cluster.context()
        lookups = RuleLookups(context, Served(context))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(context.informers.run()), group.create_task(lookups.run())]
            await cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": "trainer"}})
            await cluster.create(CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {"batch": "8" * 1000}})
            await cluster.until(lambda: not lookups.lacks(kinds.CONFIG_MAP, "default", "settings"))
            await cluster.until(lambda: not lookups.lacks(kinds.SERVICE_ACCOUNT, "default", "trainer"))
            await cluster.until(lambda: lookups.lacks(kinds.CONFIG_MAP, "default", "other"))
            await cluster.until(lambda: lookups.lacks(kinds.SERVICE_ACCOUNT, "default", "other"))
            found = lookups.find(kinds.CONFIG_MAP, "default", "settings")
            assert found is not None
            assert "data" not in found
            assert not lookups.lacks(kinds.SECRET, "default", "other")
            for task in tasks:
                task.cancel()


@virtual
async def test_the_report_of_budgets_counts_until_it_is_out_of_date(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        context = cluster.context()
        lookups = RuleLookups(context, Served(context), NAMESPACE)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(context.informers.run()), group.create_task(lookups.run())]
            assert not lookups.cost_budgets().is_refusing
            await write_budgets(cluster, 1200, age_s=3500)
            await cluster.until(lambda: lookups.cost_budgets().is_refusing)
            await cluster.until(lambda: not lookups.cost_budgets().is_refusing, 200)
            await write_budgets(cluster, 1200)
            await cluster.until(lambda: lookups.cost_budgets().is_refusing)
            for task in tasks:
                task.cancel()
