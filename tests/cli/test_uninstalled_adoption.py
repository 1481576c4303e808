"""`shoal uninstall` returns the decisions to an adopted project first, and names the way without that."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.adopted_clusters import CONTROLLER, SPACE, deployment
from build.small_clusters import ADMIN, SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.cli.adoption import revert_all
from shoal.cli.release_options import ReleaseOptions
from shoal.cli.status import adoption_rows
from shoal.cli.uninstall import UninstallOptions, removed
from shoal.client.kind import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.install.adoption.record import ADOPTED, AdoptionRecord, SavedDeployment, adoption_to_api
from shoal.install.inventory import DEPLOYED, ReleaseRecord, to_api
from shoal.install.progress_rows import AdoptionRow
from shoal.install.release import FIELD_MANAGER, Release
from shoal.wiring.installation.adopting import find_adoption
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.stage_waits import NotReadyError

RELEASE = Release("shoal", "shoal-system", "0.2.0")


async def _adopted(cluster: SmallCluster) -> ClusterWriter:
    """Its controller never gets ready again."""
    for name in (RELEASE.namespace, SPACE):
        await cluster.create(NAMESPACES, {"metadata": {"name": name}}, "")
    await cluster.create(DEPLOYMENTS, deployment(CONTROLLER, 0), SPACE)
    record = AdoptionRecord("kueue", SPACE, deployments=(SavedDeployment(SPACE, CONTROLLER, 1),))
    written = adoption_to_api(record.with_state(ADOPTED), RELEASE)
    await cluster.create(CONFIG_MAPS, written, RELEASE.namespace)
    return ClusterWriter(InsideApi(cluster.plane, ADMIN, FIELD_MANAGER), cluster.clock)


@virtual
async def test_a_project_that_does_not_start_again_does_not_keep_shoal_from_being_removed(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        writer = await _adopted(cluster)
        with pytest.raises(NotReadyError) as refusal:
            await revert_all(writer, RELEASE, is_dry=False, timeout_s=30.0)
        assert f"Deployment {SPACE}/{CONTROLLER} has no ready pod" in str(refusal.value)
        assert "to remove Shoal without returning the decisions to Kueue: add --no-revert" in str(refusal.value)
        await cluster.delete(CONFIG_MAPS, "shoal-adoption-kueue", namespace=RELEASE.namespace)
        await revert_all(writer, RELEASE, is_dry=False, timeout_s=30.0)


@virtual
async def test_the_status_names_adopted_projects(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        writer = await _adopted(cluster)
        assert await adoption_rows(writer, RELEASE.namespace) == (AdoptionRow("Kueue", ADOPTED),)
        assert await adoption_rows(writer, "other") == ()


@virtual
async def test_a_dry_run_returns_no_decisions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with small_cluster(tmp_path) as cluster:
        writer = await _adopted(cluster)
        await revert_all(writer, RELEASE, is_dry=True, timeout_s=30.0)
        assert "the decisions would be returned to Kueue" in capsys.readouterr().out
        record = await find_adoption(writer, "kueue", RELEASE.namespace)
        assert record is not None
        assert record.state == ADOPTED


@virtual
async def test_without_a_revert_a_release_is_removed_with_its_record(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        writer = await _adopted(cluster)
        record = ReleaseRecord(RELEASE.name, RELEASE.namespace, state=DEPLOYED)
        await cluster.create(CONFIG_MAPS, to_api(record), RELEASE.namespace)
        options = UninstallOptions(no_revert=True)
        named = ReleaseOptions(release=RELEASE.name, namespace=RELEASE.namespace)
        await removed(writer, named, options)
        assert await find_adoption(writer, "kueue", RELEASE.namespace) is None
        stopped = await cluster.get(DEPLOYMENTS, CONTROLLER, SPACE)
        assert stopped["spec"]["replicas"] == 0
