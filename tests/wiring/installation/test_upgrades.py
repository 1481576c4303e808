"""Upgrades that are not ready in time, and what the record, the objects and the message say then."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.upgraded_releases import QUICK, upgraded
from build.virtual_time import virtual
from shoal.install.inventory import DEPLOYED, FAILED
from shoal.install.progress_rows import failed_upgrade
from shoal.units.errors import UserError
from shoal.wiring.installation.stage_waits import NotReadyError


@virtual
async def test_an_upgrade_that_is_not_ready_returns_to_the_revision_before(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await tried.installer.apply(await tried.prepared(*QUICK))
        before = await tried.image()
        kept = (await tried.record()).current.values
        prepared = await tried.prepared("image.tag=bad", "replicas=1", kept=kept)
        with pytest.raises(NotReadyError) as caught:
            await tried.installer.upgrade(prepared, rolls_back=True)
        assert "workloads: Deployment gpu-operator/shoal" in str(caught.value)
        assert str(caught.value).endswith("revision 1 is in force again; shoal status shows what failed")
        assert await tried.image() == before
        record = await tried.record()
        assert (record.state, record.current.number, record.current.values) == (DEPLOYED, 1, kept)
        names = {one.kind for one in record.inventory}
        assert "PodDisruptionBudget" in names
        assert failed_upgrade(record).startswith(
            "image.tag=bad, replicas=1: workloads: Deployment gpu-operator/shoal: "
        )
        await tried.installer.apply(await tried.prepared(*QUICK))
        assert (await tried.record()).failed == record.failed
        await tried.installer.upgrade(await tried.prepared("replicas=1", kept=kept), rolls_back=True)
        assert failed_upgrade(await tried.record()) == ""


@virtual
async def test_a_failed_upgrade_can_be_kept_and_completed(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await tried.installer.apply(await tried.prepared(*QUICK))
        with pytest.raises(NotReadyError):
            await tried.installer.upgrade(await tried.prepared(*QUICK, "image.tag=bad"), rolls_back=False)
        record = await tried.record()
        assert record.state == FAILED
        assert failed_upgrade(record).startswith("the same values: workloads: ")
        await tried.installer.upgrade(await tried.prepared(*QUICK, "image.tag=good"), rolls_back=True)
        record = await tried.record()
        assert (record.state, record.current.number) == (DEPLOYED, 2)
        assert record.former is not None
        assert (await tried.image()).endswith(":good")
        returned = await tried.installer.roll_back(record)
        assert (returned.current.number, await tried.image()) == (3, "shoal:0.2.0")


@virtual
async def test_without_a_former_revision_there_is_no_way_back(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        record = await tried.installer.apply(await tried.prepared(*QUICK))
        with pytest.raises(UserError, match="has no former revision"):
            await tried.installer.roll_back(record)


@virtual
async def test_an_installation_that_is_not_ready_names_the_stage_and_is_completed_later(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        with pytest.raises(NotReadyError, match="workloads: Deployment gpu-operator/shoal"):
            await tried.installer.apply(await tried.prepared(*QUICK, "image.tag=bad"))
        record = await tried.installer.apply(await tried.prepared(*QUICK))
        assert (record.state, record.current.number, record.former) == (DEPLOYED, 1, None)
        assert "GPU stack: 1 object ready" in tried.told


@virtual
async def test_the_definition_of_the_policy_is_upgraded_unless_the_values_say_otherwise(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await tried.installer.apply(await tried.prepared(*QUICK))
        kinds = [obj["kind"] for obj in (await tried.prepared(*QUICK, "replicas=1")).plan.applied]
        assert kinds.count("CustomResourceDefinition") == 2
        prepared = await tried.prepared(*QUICK, "replicas=1", "operator.upgradeCRD=false")
        assert "CustomResourceDefinition" not in [obj["kind"] for obj in prepared.plan.applied]
        await tried.installer.upgrade(prepared, rolls_back=True)
        assert [one.kind for one in (await tried.record()).inventory].count("CustomResourceDefinition") == 2
