"""The ConfigMap of Volcano's scheduler on a cluster: it is used as it is, and an invalid one changes nothing."""

from __future__ import annotations

from pathlib import Path

from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from build.volcano_scenes import VolcanoScene, volcano_scene
from shoal.client.kind import CONFIG_MAPS, NAMESPACES

_NAME, _NAMESPACE = "volcano-scheduler-configmap", "volcano-system"
_WITHOUT_ENQUEUE = """
actions: "allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: proportion
"""


async def _configure(cluster: SmallCluster, text: str, namespace: str = _NAMESPACE) -> None:
    data = {"volcano-scheduler.conf": text}
    existing = {one["metadata"]["name"] for one in await cluster.all(NAMESPACES)}
    if namespace not in existing:
        await cluster.create(NAMESPACES, {"metadata": {"name": namespace}})
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": _NAME}, "data": data}, namespace)
    else:
        await cluster.patch(CONFIG_MAPS, _NAME, {"data": data}, namespace=namespace)
    await cluster.pass_time(3)


async def _waits(scene: VolcanoScene) -> None:
    """A pod of a group that no queue admits, because its minimum is larger than the cluster."""
    await scene.group("g", minMember=1, minResources={"nvidia.com/gpu": 100})
    await scene.pod("p", "g", gpus=1)
    await scene.cluster.pass_time(5)


async def _events(cluster: SmallCluster) -> set[tuple[str, str]]:
    return {(one["reason"], one["message"]) for one in await cluster.events(_NAME)}


@virtual
async def test_actions_are_those_of_the_config_map_and_the_default_ones_after_its_deletion(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await _waits(scene)
        assert await scene.bound() == set()
        await _configure(scene.cluster, _WITHOUT_ENQUEUE)
        await scene.cluster.until(lambda: scene.bound_are("p"))
        await scene.cluster.delete(CONFIG_MAPS, _NAME, namespace=_NAMESPACE)
        await scene.cluster.pass_time(3)
        await scene.group("h", minMember=1, minResources={"nvidia.com/gpu": 100})
        await scene.pod("q", "h", gpus=1)
        await scene.cluster.pass_time(5)
        assert await scene.bound() == {"p"}


@virtual
async def test_an_invalid_one_keeps_the_last_good_one_and_an_event_says_what_is_wrong_and_where(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await _configure(scene.cluster, _WITHOUT_ENQUEUE)
        for text in ("tiers: [", "actions: 7"):
            await _configure(scene.cluster, text)
        await _waits(scene)
        assert await scene.bound() == {"p"}
        messages = [words for reason, words in await _events(scene.cluster) if reason == "InvalidConfiguration"]
        assert len(messages) == 2
        assert all("the last good configuration stays in use" in words for words in messages)
        assert all(f"ConfigMap {_NAMESPACE}/{_NAME}: data[volcano-scheduler.conf]" in words for words in messages)
        assert any("actions: a list of names" in words for words in messages)


@virtual
async def test_a_misspelled_plugin_is_named_with_the_nearest_one_and_the_others_are_used(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await _configure(scene.cluster, _WITHOUT_ENQUEUE.replace("priority", "prioritty"))
        (words,) = [words for reason, words in await _events(scene.cluster) if reason == "UnknownConfiguration"]
        assert "did you mean priority?" in words
        await _waits(scene)
        assert await scene.bound() == {"p"}


@virtual
async def test_a_config_map_of_another_namespace_counts_for_nothing(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await _configure(scene.cluster, _WITHOUT_ENQUEUE, "tenant")
        await _waits(scene)
        assert await scene.bound() == set()
