"""A cache that keeps only the fields that its reader needs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.item import Item, shortened
from shoal.client.kind import CONFIG_MAPS
from shoal.client.slim_informer import SlimInformer


class _Meta(msgspec.Struct, omit_defaults=True):
    labels: dict[str, str] = {}


class _Labelled(msgspec.Struct, omit_defaults=True):
    metadata: _Meta


@virtual
async def test_objects_of_lists_and_of_watches_have_only_these_fields(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        made = {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"long": "text" * 100}}
        await cluster.create(CONFIG_MAPS, made)
        informer = SlimInformer(cluster.api, CONFIG_MAPS, cluster.clock, cluster.draw, _Labelled)
        seen: list[tuple[str, bytes]] = []
        informer.on_change(lambda _, after: seen.append((after.name, after.data)) if after is not None else None)
        cluster.tasks.append(asyncio.ensure_future(informer.run()))
        await informer.synced()
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "b"}, "data": {"c": "d"}})
        await cluster.pass_time(1)
        assert [one for one in seen if one[0] in "ab"] == [
            ("a", b'{"metadata":{"labels":{"x":"y"}}}'),
            ("b", b'{"metadata":{}}'),
        ]
        found = informer.get("default", "a")
        assert found is not None
        assert found.uid != ""


def test_a_shortened_item_keeps_its_identity() -> None:
    item = Item("ns", "a", "u", 7, b'{"metadata":{"labels":{"x":"y"}},"spec":{}}')
    found = shortened(item, _Labelled)
    assert (found.key, found.uid, found.version) == (("ns", "a"), "u", 7)
    assert found.data == b'{"metadata":{"labels":{"x":"y"}}}'
