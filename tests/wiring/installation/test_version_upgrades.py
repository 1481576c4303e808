"""An upgrade from a release of a lower version with older definitions: stored objects, values, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.killed_writes import KilledApi
from build.upgraded_releases import Upgraded, upgraded, with_older_definitions
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES
from shoal.client.item import Item
from shoal.client.kind import DEFINITIONS, Kind
from shoal.client.refusals import ForbiddenError
from shoal.install.inventory import DEPLOYED
from shoal.install.release import Release

Obj = dict[str, Any]
OLD, NEW = Release("prod", "gpu-operator", "0.1.4"), Release("prod", "gpu-operator", "0.2.0")
VALUES = ("crds.projects={gpu-operator,kueue}", "controllers={scheduler}", "smokeTest.enabled=false")
FLAVORS = {
    name: Kind("kueue.x-k8s.io", name, "resourceflavors", "ResourceFlavor", is_namespaced=False)
    for name in ("v1beta1", "v1beta2")
}
_FLAVORS = "resourceflavors.kueue.x-k8s.io"


class _WithoutUpdates(KilledApi):
    """Of a user who may not update objects."""

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        raise ForbiddenError(f"{kind.plural} is forbidden")


async def _stored(tried: Upgraded) -> tuple[str, list[str]]:
    found = await tried.cluster.get(DEFINITIONS, _FLAVORS)
    storing = next(one["name"] for one in found["spec"]["versions"] if one["storage"])
    return storing, found["status"]["storedVersions"]


async def _install_old(tried: Upgraded) -> None:
    await tried.installer.apply(with_older_definitions(await tried.prepared(*VALUES, "replicas=3", release=OLD)))
    flavor = {"metadata": {"name": "a100"}, "spec": {"nodeLabels": {"gpu": "a100"}}}
    await tried.cluster.create(FLAVORS["v1beta1"], flavor)


@virtual
async def test_objects_are_stored_in_the_new_version_and_read_in_both(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await _install_old(tried)
        assert await _stored(tried) == ("v1beta1", ["v1beta1"])
        kept = (await tried.record()).current.values
        await tried.installer.upgrade(await tried.prepared(kept=kept, release=NEW), rolls_back=True)
        assert await _stored(tried) == ("v1beta2", ["v1beta2"])
        assert f"definitions: 1 object of {_FLAVORS} stored in the version v1beta2" in tried.told
        for kind in FLAVORS.values():
            flavor = await tried.cluster.get(kind, "a100")
            assert (flavor["apiVersion"], flavor["spec"]) == (kind.api_version, {"nodeLabels": {"gpu": "a100"}})
        record = await tried.record()
        assert (record.state, record.current.number, record.current.version) == (DEPLOYED, 2, "0.2.0")
        assert record.current.values == kept
        assert await tried.image() == "shoal:0.2.0"


@virtual
async def test_fields_of_the_newer_definition_can_be_written_after_the_upgrade(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await _install_old(tried)
        spec = {"spec": {"kataManager": {"enabled": True}}}
        await tried.cluster.patch(CLUSTER_POLICIES, "cluster-policy", spec)
        assert "kataManager" not in (await tried.cluster.get(CLUSTER_POLICIES, "cluster-policy"))["spec"]
        kept = (await tried.record()).current.values
        await tried.installer.upgrade(await tried.prepared(kept=kept, release=NEW), rolls_back=True)
        await tried.cluster.patch(CLUSTER_POLICIES, "cluster-policy", spec)
        assert (await tried.cluster.get(CLUSTER_POLICIES, "cluster-policy"))["spec"]["kataManager"] == {"enabled": True}


@virtual
async def test_the_way_back_restores_the_old_objects_while_the_definitions_serve_both_versions(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await _install_old(tried)
        kept = (await tried.record()).current.values
        latest = await tried.installer.upgrade(
            await tried.prepared("replicas=1", kept=kept, release=NEW), rolls_back=True
        )
        returned = await tried.installer.roll_back(latest)
        assert (returned.current.version, returned.current.values) == ("0.1.4", kept)
        assert await tried.image() == "shoal:0.1.4"
        assert await _stored(tried) == ("v1beta2", ["v1beta2"])
        assert (await tried.cluster.get(FLAVORS["v1beta1"], "a100"))["spec"] == {"nodeLabels": {"gpu": "a100"}}


@virtual
async def test_definitions_and_a_release_of_a_newer_version_are_refused(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await tried.installer.apply(await tried.prepared(*VALUES, release=NEW))
        found = await tried.tried(*VALUES, release=OLD)
        assert found.errors[0].what == "release prod was installed by Shoal 0.2.0, which is newer than 0.1.4"
        newer = [one for one in found.errors if one.check == "definitions"]
        assert f"the CustomResourceDefinition {_FLAVORS} was written by Shoal 0.2.0" in newer[-1].what + "".join(
            one.what for one in newer
        )


@virtual
async def test_objects_that_cannot_be_stored_anew_are_named_and_the_upgrade_goes_on(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await _install_old(tried)
        tried.use(_WithoutUpdates(tried.writer.api))
        kept = (await tried.record()).current.values
        await tried.installer.upgrade(await tried.prepared(kept=kept, release=NEW), rolls_back=True)
        assert await _stored(tried) == ("v1beta2", ["v1beta1", "v1beta2"])
        assert [one for one in tried.told if "stay stored in the version v1beta1" in one]
        assert (await tried.record()).state == DEPLOYED
