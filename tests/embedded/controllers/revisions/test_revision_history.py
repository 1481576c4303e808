"""The revisions of a set: one for each template, the present one the newest, names that are taken gone around."""

from __future__ import annotations

from pathlib import Path

from build.pod_life import template, workload
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import CONTROLLER_REVISIONS, STATEFUL_SETS
from shoal.client.owned_pods.ownership import selector_of_spec
from shoal.embedded.controllers.revisions.history import History
from shoal.embedded.controllers.revisions.revision import data_of, template_of

LABEL = "controller.kubernetes.io/hash"


def history(cluster: SmallCluster, owner: Obj) -> History:
    return History(cluster.context(), (STATEFUL_SETS, owner), selector_of_spec(owner["spec"]), LABEL)


async def made_set(cluster: SmallCluster) -> Obj:
    cluster.informers.of(CONTROLLER_REVISIONS)
    owner = await cluster.create(STATEFUL_SETS, workload("db", 1))
    await cluster.pass_time(1)
    return owner


def with_image(owner: Obj, image: str) -> Obj:
    return {**owner, "spec": {**owner["spec"], "template": template("db", image)}}


def test_a_template_comes_back_out_of_its_data() -> None:
    one = template("db")
    data = data_of(one)
    assert data["spec"]["template"]["$patch"] == "replace"
    assert template_of({"data": data}) == one
    assert "$patch" not in one


@virtual
async def test_each_template_has_one_revision_and_the_present_one_is_the_newest(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        owner = await made_set(cluster)
        numbers = []
        for image in ("a", "b", "b", "a"):
            latest = await history(cluster, with_image(owner, image)).settle()
            assert latest["data"] == data_of(template("db", image))
            numbers.append(latest["revision"])
        assert numbers == [1, 2, 2, 3]
        found = await cluster.all(CONTROLLER_REVISIONS)
        assert sorted(one["revision"] for one in found) == [2, 3]
        for one in found:
            meta = one["metadata"]
            assert meta["name"] == f"db-{meta['labels'][LABEL]}"
            assert meta["labels"]["app"] == "db"
            assert meta["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]


@virtual
async def test_a_taken_name_is_gone_around_and_counted(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        owner = await made_set(cluster)
        first = await history(cluster, owner).settle()
        await cluster.delete(CONTROLLER_REVISIONS, first["metadata"]["name"])
        stranger = {"metadata": {"name": first["metadata"]["name"]}, "data": {"other": True}, "revision": 1}
        await cluster.create(CONTROLLER_REVISIONS, stranger)
        await cluster.pass_time(1)
        kept = history(cluster, owner)
        second = await kept.settle()
        assert kept.collisions == 1
        assert second["metadata"]["name"] != first["metadata"]["name"]


@virtual
async def test_revisions_of_nobody_are_taken_over(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        owner = await made_set(cluster)
        first = await history(cluster, owner).settle()
        name = first["metadata"]["name"]
        await cluster.patch(CONTROLLER_REVISIONS, name, {"metadata": {"ownerReferences": None}})
        await cluster.pass_time(1)
        again = await history(cluster, owner).settle()
        assert again["metadata"]["uid"] == first["metadata"]["uid"]
        found = await cluster.get(CONTROLLER_REVISIONS, name)
        assert found["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]


@virtual
async def test_the_oldest_unused_ones_go(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        owner = await made_set(cluster)
        names = []
        for image in "abcde":
            kept = history(cluster, with_image(owner, image))
            names.append((await kept.settle())["metadata"]["name"])
        await kept.trim({names[0], names[4]}, 1)
        left = {one["metadata"]["name"] for one in await cluster.all(CONTROLLER_REVISIONS)}
        assert left == {names[0], names[3], names[4]}
