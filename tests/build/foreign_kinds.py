"""A small cluster with the kinds of other projects in it, and objects of these kinds as people write them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.small_clusters import SmallCluster, small_cluster
from build.yaml_texts import yaml_values
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, Kind
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.wiring.foreign_kinds import provide_foreign

SAMPLES = Path(__file__).parents[1] / "embedded" / "apiserver" / "foreign" / "samples"


@asynccontextmanager
async def foreign_cluster(folder: Path) -> AsyncIterator[SmallCluster]:
    async with small_cluster(folder) as cluster:
        await provide_foreign(cluster.api)
        await established(cluster)
        yield cluster


async def established(cluster: SmallCluster) -> None:
    """Returns when every definition that is there is served."""

    async def is_so() -> bool:
        return all(condition(one, "Established") == "True" for one in await cluster.all(DEFINITIONS))

    await cluster.until(is_so)


def condition(obj: Obj, type_: str) -> str:
    found = (obj.get("status") or {}).get("conditions") or ()
    return next((str(one["status"]) for one in found if one["type"] == type_), "")


def provided_kinds() -> dict[tuple[str, str], Kind]:
    """By apiVersion and kind."""
    found = {}
    for one in definitions():
        spec = one["spec"]
        for version in spec["versions"]:
            kind = Kind(
                spec["group"],
                version["name"],
                spec["names"]["plural"],
                spec["names"]["kind"],
                is_namespaced=spec["scope"] == "Namespaced",
            )
            found[kind.api_version, kind.name] = kind
    return found


def samples(files: Iterable[Path]) -> Iterator[Obj]:
    """The documents of YAML files that have a kind."""
    for file in files:
        for document in yaml_values(file.read_text(encoding="utf-8")):
            if isinstance(document, dict) and "kind" in document and "apiVersion" in document:
                yield document


def lost(given: Any, stored: Any, path: str = "") -> list[str]:
    """What is in the one and not in the other: fields, by their paths."""
    if isinstance(given, dict) and isinstance(stored, dict):
        return [words for key, value in given.items() for words in lost(value, stored.get(key), f"{path}.{key}")]
    if isinstance(given, list) and isinstance(stored, list) and len(given) == len(stored):
        return [words for at, one in enumerate(given) for words in lost(one, stored[at], f"{path}[{at}]")]
    return [] if given == stored else [path]
