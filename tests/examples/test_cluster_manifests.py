"""Every file of `examples/cluster` comes on its header's `shoal up` to what its header waits for, in virtual time."""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.crews import Crew
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import in_virtual_time
from build.yaml_texts import yaml_values
from shoal.client import kind
from shoal.client.kind import Kind
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.volumes.classes import local_class
from shoal.embedded.machines.fleet_spec import read_fleet

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "examples" / "cluster").iterdir())
KINDS = {
    "Job": kind.JOBS,
    "CronJob": kind.CRON_JOBS,
    "Deployment": kind.DEPLOYMENTS,
    "StatefulSet": kind.STATEFUL_SETS,
    "Service": kind.SERVICES,
    "PodDisruptionBudget": kind.DISRUPTION_BUDGETS,
    "PersistentVolumeClaim": kind.VOLUME_CLAIMS,
}
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_SOME_S = 5.0


def test_there_are_examples_for_the_cluster() -> None:
    assert len(MANIFESTS) >= 5


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: str(path.name))
def test_it_comes_to_what_its_header_waits_for(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    start, apply, *waits = [shlex.split(line) for line in re.findall(r"^#   \$ (.+)$", text, re.MULTILINE)]
    assert start[:3] == ["shoal", "up", "--nodes"]
    assert apply == ["kubectl", "apply", "-f", str(path.relative_to(ROOT))]
    assert waits, "the header says what to wait for"
    objects = [one for one in yaml_values(text) if one]
    in_virtual_time(_played(tmp_path, start[3], objects, waits))


async def _played(folder: Path, nodes: str, objects: list[dict[str, Any]], waits: list[list[str]]) -> None:
    async with small_cluster(folder) as cluster:
        crew = Crew(cluster, read_fleet(nodes), random.Random(1))
        await cluster.create(kind.STORAGE_CLASSES, local_class())
        await cluster.pass_time(_SOME_S)
        for obj in objects:
            await cluster.create(KINDS[obj["kind"]], obj)
        for words in waits:
            await _waited(cluster, words)
        assert crew.broken() == []
        await crew.end()


async def _waited(cluster: SmallCluster, words: list[str]) -> None:
    """`kubectl wait --for=... KIND/NAME --timeout=SECONDSs`."""
    (command, verb, wanted, what, timeout) = words
    assert (command, verb) == ("kubectl", "wait")
    resource, _, name = what.partition("/")
    of = _kind_of(resource)
    seconds = float(timeout.removeprefix("--timeout=").removesuffix("s"))

    async def is_so() -> bool:
        try:
            found = await cluster.get(of, name)
        except NotFoundError:
            return False
        return _holds(wanted.removeprefix("--for="), found)

    await cluster.until(is_so, seconds)


def _kind_of(resource: str) -> Kind:
    return next(found for name, found in KINDS.items() if name.lower() == resource)


def _holds(wanted: str, found: dict[str, Any]) -> bool:
    form, _, rest = wanted.partition("=")
    if form == "condition":
        conditions = found.get("status", {}).get("conditions") or []
        return any(one["type"].lower() == rest and one["status"] == "True" for one in conditions)
    assert form == "jsonpath"
    path, _, value = rest.partition("}")
    values = list(_along(path.removeprefix("{"), found))
    return bool(values) and (not value or str(values[0]) == value.removeprefix("="))


def _along(path: str, found: Any) -> Iterator[Any]:
    """What stands there, if anything does."""
    for name, index in _STEP.findall(path):
        try:
            found = found[int(index) if index else name]
        except (KeyError, IndexError):
            return
    yield found


def test_what_is_not_so_would_be_noticed() -> None:
    job = {"status": {"ready": 3, "conditions": [{"type": "Complete", "status": "False"}]}}
    assert not _holds("condition=complete", job)
    assert not _holds("jsonpath={.status.ready}=4", job)
    assert not _holds("jsonpath={.status.failed}", job)
    assert _holds("jsonpath={.status.conditions[0].type}=Complete", job)
