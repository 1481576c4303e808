"""However a control plane ends, it ends in order, and nothing that it does by itself complains of it."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.in_process import in_process
from build.planes import operations
from shoal.embedded.apiserver.resource import Home
from shoal.embedded.apiserver.server.run import serve
from shoal.embedded.apiserver.settings import Settings
from shoal.embedded.apiserver.storage.faulty import FaultyStorage
from shoal.embedded.apiserver.storage.memory import MemoryStorage
from shoal.embedded.apiserver.storage.sqlite import FILE
from shoal.embedded.apiserver.storage.sqlite_file import SqliteFile
from shoal.units.errors import UserError

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITIONS = Home("apiextensions.k8s.io", "customresourcedefinitions")
QUOTAS = "/api/v1/namespaces/default/resourcequotas"


@pytest.fixture(autouse=True, scope="module")
def collected_as_before() -> Iterator[None]:
    """A server has its process to itself, and what is in it collected as it likes."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*before)


async def test_an_end_in_the_middle_of_what_the_server_does_by_itself_is_no_failure(tmp_path: Path) -> None:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "things", "kind": "Thing"}
    crd = {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "things.x.io"},
        "spec": {"group": "x.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    quota = {"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    async with in_process(tmp_path) as api:
        assert (await api.ask("POST", QUOTAS, quota)).code == 201
        assert (await api.ask("POST", CRDS, crd)).code == 201
    assert api.told.lines == []


async def test_a_resource_that_only_calls_itself_namespace_is_given_nothing(tmp_path: Path) -> None:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    crd = {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "namespaces.bus.io"},
        "spec": {
            "group": "bus.io",
            "scope": "Namespaced",
            "names": {"plural": "namespaces", "kind": "Namespace"},
            "versions": [version],
        },
    }
    async with in_process(tmp_path) as api:
        state = api.plane.context.state
        watch = state.watch(DEFINITIONS, None, state.revision)
        assert (await api.ask("POST", CRDS, crd)).code == 201
        while api.plane.context.catalog.find("bus.io", "v1", "namespaces") is None:
            await watch.next_batch()
        bus = {"kind": "Namespace", "apiVersion": "bus.io/v1", "metadata": {"name": "bus"}}
        made = await api.ask("POST", "/apis/bus.io/v1/namespaces/default/namespaces", bus)
        assert made.code == 201
        assert (await api.ask("GET", "/api/v1/namespaces/bus/serviceaccounts")).body["items"] == []
        core = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "bus"}}
        assert (await api.ask("POST", "/api/v1/namespaces", core)).code == 201
        assert len((await api.ask("GET", "/api/v1/namespaces/bus/serviceaccounts")).body["items"]) == 1


def test_a_server_whose_kubeconfig_cannot_be_written_leaves_its_state_closed(tmp_path: Path) -> None:
    state, in_the_way = tmp_path / "state", tmp_path / "file"
    state.mkdir()
    in_the_way.touch()
    told: list[str] = []
    with pytest.raises(Exception, match="file"):
        serve(Settings(state, in_the_way / "kubeconfig", port=0), told.append)
    assert told == []
    assert _can_be_opened(state)


def test_a_server_that_is_told_to_stop_leaves_its_state_closed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    told: list[str] = []

    def ready(url: str) -> None:
        told.append(url)
        assert not _can_be_opened(state)
        os.kill(os.getpid(), signal.SIGTERM)

    serve(Settings(state, tmp_path / "kubeconfig", port=0), ready)
    assert len(told) == 1
    assert _can_be_opened(state)


def _can_be_opened(state: Path) -> bool:
    """Nobody else has it open."""
    try:
        SqliteFile.open(state / FILE).close()
    except UserError:
        return False
    return True


async def test_a_disk_without_room_for_the_first_objects_is_named_in_one_line(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    storage.fill()
    with pytest.raises(UserError, match=r"the first objects cannot be stored: .*full") as refused:
        async with operations(tmp_path, storage):
            pass
    assert refused.value.fix == "make room there"
    assert "\n" not in str(refused.value)
